// Completion in bash, and the manual page, as they are installed.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class CompletionEndToEnd : public ThimbleFixture {
 protected:
  void SetUp() override {
    ThimbleFixture::SetUp();
    Put(At("completion"), RunWell("generate-completion").out);
    Put(At("weights 1.safetensors"), "");
    Put(At("net.toml"), "");
    std::filesystem::create_directory(At("runs"));
  }
  // The completions that bash offers for the last of these words, which it splits at = and :.
  Words Offered(const std::string& words) const {
    const std::string script = "cd '" + folder_ + "' && . ./completion && COMP_WORDS=(" + words +
                               ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _thimble && "
                               "((${#COMPREPLY[@]})) && printf '%s\\n' \"${COMPREPLY[@]}\"";
    const ProcessResult result =
        RunProcess({"/usr/bin/env", "bash", "--norc", "--noprofile", "-c", script});
    EXPECT_EQ(result.err, "") << words;
    Words offered;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) offered.push_back(line);
    return offered;
  }
};

TEST_F(CompletionEndToEnd, CommandsAndOptions) {
  EXPECT_THAT(Offered("thimble ''"), ElementsAre("train", "eval", "translate", "plan", "profile",
                                                 "report", "calibrate", "models", "data"));
  EXPECT_THAT(Offered("thimble p"), ElementsAre("plan", "profile"));
  EXPECT_THAT(Offered("thimble --v"), ElementsAre("--version"));
  EXPECT_THAT(Offered("thimble train --m"),
              ElementsAre("--model", "--microbatch", "--momentum", "--math"));
  EXPECT_THAT(Offered("thimble train ''"), Contains("--model"));
  EXPECT_THAT(Offered("thimble models --"), ElementsAre("--json", "--help"));
  EXPECT_THAT(Offered("thimble plan --model wrn-10-1 --lay"), ElementsAre("--layers"));
}

TEST_F(CompletionEndToEnd, Values) {
  EXPECT_THAT(Offered("thimble train --device ''"), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(Offered("thimble train --device = cu"), ElementsAre("cuda"));
  EXPECT_THAT(Offered("thimble train --device ="), ElementsAre("cpu", "cuda"));
  EXPECT_THAT(Offered("thimble plan --recompute ''"),
              ElementsAre("none", "cheap", "blocks", "sqrt", "optimal"));
  EXPECT_THAT(Offered("thimble plan --data c"), ElementsAre("cifar10:", "cifar100:"));
  EXPECT_THAT(Offered("thimble eval --part v"), ElementsAre("validation"));
  EXPECT_THAT(Offered("thimble train --batch ''"), IsEmpty());
}

TEST_F(CompletionEndToEnd, FilesAndFolders) {
  EXPECT_THAT(Offered("thimble train --init w"), ElementsAre("weights 1.safetensors"));
  EXPECT_THAT(Offered("thimble plan --config n"), ElementsAre("net.toml"));
  EXPECT_THAT(Offered("thimble plan --model ''"), AllOf(Contains("wrn-"), Contains("net.toml")));
  EXPECT_THAT(Offered("thimble eval ''"), ElementsAre("runs"));
  EXPECT_THAT(Offered("thimble report runs r"), ElementsAre("runs"));
  EXPECT_THAT(Offered("thimble train --out ''"), ElementsAre("runs"));
  EXPECT_THAT(Offered("thimble report --out n"), ElementsAre("net.toml"));
  EXPECT_THAT(Offered("thimble train --data cifar10 : r"), ElementsAre("runs"));
  EXPECT_THAT(Offered("thimble train --data cifar10 :"), ElementsAre("runs"));
}

TEST_F(CompletionEndToEnd, ManualPageHasNoFaults) {
  Put(At("thimble.1"), RunWell("generate-man").out);
  const std::string page = Content(At("thimble.1"));
  for (const std::string& line : Split("--model --budget --part --trace --plots --dump-steps")) {
    std::string name;
    for (const char c : line) name += c == '-' ? "\\-" : std::string(1, c);
    EXPECT_THAT(page, HasSubstr("\\fB" + name + "\\fR"));
  }
  for (const char c : page) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << page;
  EXPECT_THAT(page, Not(HasSubstr("generate\\-")));
  if (!std::filesystem::exists("/usr/bin/groff")) return;
  const ProcessResult shown =
      RunProcess({"/usr/bin/groff", "-ww", "-man", "-Tascii", "-P-cbou", At("thimble.1")});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.err, "");
  EXPECT_THAT(shown.out, HasSubstr("--device cpu|cuda"));
}

}  // namespace
}  // namespace thimble
