// `thimble translate`: a line for each line, in order, in files and pipes, whatever the lines are.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tests/end_to_end/thimble_fixture.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string Joined(const Words& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

constexpr const char* kData = "numbers:2000,200";

// A run whose network has learned a little, so that translations differ.
class TranslateEndToEnd : public NoReportFixture {
 protected:
  void SetUp() override {
    NoReportFixture::SetUp();
    RunWell(
        fmt::format("train --data {} --batch 300 --steps 60 --lr 0.005 --warmup 10 --beam 0 "
                    "--eval-every 0 --out @/run",
                    kData));
  }

  void WriteInput(const std::string& text) { std::ofstream(At("input")) << text; }
  ProcessResult Translate(const std::string& options = "") {
    return Run("translate @/run --threads 1 " + options, {.input = At("input")});
  }
  Words TranslateWell(const std::string& text, const std::string& options = "") {
    WriteInput(text);
    const ProcessResult result = Translate(options);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, IsEmpty());
    EXPECT_TRUE(result.out.empty() || result.out.ends_with('\n'));
    Words lines;
    std::istringstream stream(result.out);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  static void ExpectRefusalOf(const ProcessResult& result, int exit_code, const char* reason) {
    ExpectRefusal(result, exit_code, reason, reason);
  }

  static Words SomeSentences(int64_t count) {
    const TextData data = OpenTextData(kData, {}).value();
    Words lines;
    for (int64_t i = 0; i < count; ++i) lines.push_back(data.test->SourceLine(i).value());
    return lines;
  }
};

TEST_F(TranslateEndToEnd, EachLineIsTranslatedForItself) {
  const Words sentences = SomeSentences(12);
  const Words translations = TranslateWell(Joined(sentences));
  ASSERT_THAT(translations, SizeIs(sentences.size()));
  EXPECT_GT(std::set(translations.begin(), translations.end()).size(), 3U);
  // In the reverse order, among empty lines, without a line feed at the end.
  Words reversed;
  for (size_t i = sentences.size(); i-- > 0;) {
    reversed.push_back(sentences[i]);
    reversed.emplace_back();
  }
  std::string text = Joined(reversed) + "  \t " + sentences[0];
  const Words again = TranslateWell(text);
  ASSERT_THAT(again, SizeIs(2 * sentences.size() + 1));
  for (size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(again[2 * i], translations[sentences.size() - 1 - i]);
    EXPECT_EQ(again[2 * i + 1], "");
  }
  EXPECT_EQ(again.back(), translations[0]);
}

TEST_F(TranslateEndToEnd, NothingGivesNothing) {
  EXPECT_THAT(TranslateWell(""), IsEmpty());
  EXPECT_EQ(TranslateWell("\n\n"), (Words{"", ""}));
}

TEST_F(TranslateEndToEnd, UnknownWordsAndAnyBytesAreTranslatedSomehow) {
  const Words same = TranslateWell("vierundzwanzig\nvier@@ und@@ zwanzig\n");
  EXPECT_EQ(same[0], same[1]);
  EXPECT_THAT(TranslateWell("kein zahlwort\n\xff\xfe \x01\nzwei\n"), SizeIs(3));
}

TEST_F(TranslateEndToEnd, LongLinesAreCut) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "zwei ";
  WriteInput("drei\n" + text + "\nvier\n");
  const ProcessResult result = Translate("--longest 20 --verbose");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 3);
  EXPECT_THAT(result.err, HasSubstr("1 lines were longer than 19 tokens and were cut"));
  EXPECT_THAT(result.err, HasSubstr("translated 3 lines with 21 tokens"));
}

// Who writes a line and waits for its translation gets it.
TEST_F(TranslateEndToEnd, AnswersEachLineInAPipe) {
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  const int writer = ::open(At("pipe").c_str(), O_RDWR | O_CLOEXEC);
  Process process(Command("translate @/run --threads 1"), {.input = At("pipe")});
  for (int64_t line = 1; line <= 3; ++line) {
    ASSERT_EQ(::write(writer, "zwei\n", 5), 5);
    while (std::ranges::count(process.out(), '\n') < line &&
           process.Poll(std::chrono::milliseconds(20))) {
    }
    EXPECT_EQ(std::ranges::count(process.out(), '\n'), line);
  }
  ::close(writer);
  EXPECT_EQ(process.Wait().exit_code, 0);
}

TEST_F(TranslateEndToEnd, BudgetAndBeam) {
  const Words sentences = SomeSentences(5);
  const Words usual = TranslateWell(Joined(sentences));
  EXPECT_THAT(TranslateWell(Joined(sentences), "--beam 1"), SizeIs(5));
  EXPECT_THAT(TranslateWell(Joined(sentences), "--length-penalty 0 --beam 32"), SizeIs(5));
  WriteInput(Joined(sentences));
  const ProcessResult small = Translate("--longest 64 --batch 64 --budget 2MB --verbose");
  EXPECT_EQ(small.exit_code, 0) << small.err;
  ExpectRefusalOf(Translate("--budget 100kB"), 3, "does not fit");
}

TEST_F(TranslateEndToEnd, BadInput) {
  WriteInput("zwei\n");
  ExpectRefusalOf(Run("translate @/nowhere"), 2, "nowhere/config.toml");
  ExpectRefusalOf(Translate("--beam 0"), 2, "--beam 0: a translation needs at least 1 hypothesis");
  ExpectRefusalOf(Translate("--beam 33"), 2, "--beam 33: must be at most 32");
  ExpectRefusalOf(Translate("--longest 1"), 2, "--longest 1: must be from 2 to 65535 tokens");
  ExpectRefusalOf(Translate("--weights @/none.safetensors"), 2, "none.safetensors");
  std::ofstream(At("run/dict.source.txt")) << "zwei 3\nzwei 4\n";
  ExpectRefusalOf(Translate(), 2, "dict.source.txt: line 2");
  std::filesystem::remove(At("run/dict.source.txt"));
  ExpectRefusalOf(Translate(), 2, "dict.source.txt");
  RunWell("train --data shapes:40,20 --model wrn-10-1 --batch 10 --steps 1 --out @/images");
  ExpectRefusalOf(Run("translate @/images"), 2, "is no network for translation");
}

TEST_F(TranslateEndToEnd, TrainingMeasuresBleuLikeEvaluation) {
  const Json summary = ParseObject(
      RunWell(fmt::format("train --data {} --batch 1000 --epochs 4 --lr 0.005 --warmup 10 "
                          "--bleu-every 2 --threads 1 --json --out @/bleu",
                          kData))
          .out);
  const Json evaluation = ParseObject(RunWell("eval @/bleu --json").out);
  EXPECT_GT(summary["bleu"].number(), 0);
  EXPECT_EQ(summary["bleu"], evaluation["bleu"]);
  EXPECT_EQ(evaluation["sentences"], 200);
  EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]);
  int64_t measured = 0;
  for (const std::string& line : MetricsOf(At("bleu"))) {
    measured += ParseObject(line).contains("test_bleu") ? 1 : 0;
  }
  EXPECT_EQ(measured, 2);
  EXPECT_THAT(RunWell("eval @/bleu").out, HasSubstr("BLEU "));
}

}  // namespace
}  // namespace thimble
