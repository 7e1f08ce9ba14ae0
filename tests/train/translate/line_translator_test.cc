#include "thimble/train/translate/line_translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fake_dataset.h"
#include "tests/train/small_translator.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/loop/weights_files.h"
#include "thimble/train/task/translation_task.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// A folder with what a translation needs of a run: dictionaries and random weights.
class LineTranslatorTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write(kSourceDictionaryFile, "eins 9\nzwei 8\ndrei 7\n");
    std::string words;
    for (int i = 0; i < 20; ++i) words += fmt::format("word{} 1\n", i);
    folder_.Write(kTargetDictionaryFile, words);
    setup_.config = SmallConfig();
    setup_.config.model = "dynamicconv-tiny";
    setup_.run_folder = folder_.path();
    setup_.weights = folder_.path() + "/weights.safetensors";
    setup_.longest = 20;
    const TranslatorSpec spec = FindTranslator("dynamicconv-tiny", 7, 24).value();
    const TrainingProgram program =
        MakeTranslationProgram(setup_.config, spec, setup_.longest, BuiltinOps()).value();
    const auto executor = Executor::CreateFor(program.program, BuiltinOps()).value();
    const auto network = BuildTranslator(spec, BuiltinOps(), {1, 1, 1}, Mode::kTrain);
    InitializeResidents(*executor, network->inits, /*seed=*/5);
    ASSERT_TRUE(SaveWeightsOf(*executor, setup_.weights, {}).ok());
  }

  std::string Refusal() const {
    const auto opened = LineTranslator::Open(setup_, BuiltinOps());
    return opened.ok() ? "was accepted" : opened.error().message;
  }

  TestFolder folder_{"line_translator"};
  TranslationSetup setup_;
};

TEST_F(LineTranslatorTest, CountsWhatItReads) {
  const auto translator = LineTranslator::Open(setup_, BuiltinOps()).value();
  const std::vector<InputLine> lines = {{"eins zwei"}, {""}, {" \t"}, {"zwei vier <pad>"}};
  const auto translations = translator->Translate(lines);
  EXPECT_THAT(translations, ElementsAre(Not(""), "", "", Not("")));
  EXPECT_EQ(translator->lines(), 4);
  EXPECT_EQ(translator->tokens(), 5);
  EXPECT_EQ(translator->unknown_tokens(), 2);
  EXPECT_EQ(translator->cut_lines(), 0);
}

TEST_F(LineTranslatorTest, CutsLongLines) {
  const auto translator = LineTranslator::Open(setup_, BuiltinOps()).value();
  std::string just_fits;
  for (int i = 0; i < 19; ++i) just_fits += "eins ";
  const std::vector<InputLine> lines = {{just_fits}, {just_fits + "zwei"}, {"eins", true}};
  const auto translations = translator->Translate(lines);
  EXPECT_EQ(translations[0], translations[1]);
  EXPECT_EQ(translator->cut_lines(), 2);
  EXPECT_EQ(translator->tokens(), 39);
}

TEST_F(LineTranslatorTest, SplitsWordsWithTheMergesOfTheRun) {
  folder_.Write(kSourceDictionaryFile, "eins 9\nzwe@@ 8\ni 7\n");
  const auto unknown_of = [&](const std::string& line) {
    const auto translator = LineTranslator::Open(setup_, BuiltinOps()).value();
    const std::vector<InputLine> lines = {{line}};
    (void)translator->Translate(lines);
    return std::pair(translator->unknown_tokens(), translator->tokens());
  };
  // Without merges, into the fewest entries of the dictionary.
  EXPECT_EQ(unknown_of("zwei eins drei"), std::pair(int64_t{1}, int64_t{4}));
  folder_.Write(kMergesFile, "#version: 0.2\nz w\ne i</w>\ne i\nei n\nein s</w>\n");
  EXPECT_EQ(unknown_of("zwei eins"), std::pair(int64_t{2}, int64_t{3}));  // zw@@ ei eins
  EXPECT_EQ(unknown_of("zwe@@ i eins"), std::pair(int64_t{0}, int64_t{3}));
  EXPECT_EQ(unknown_of("xi"), std::pair(int64_t{1}, int64_t{2}));
  folder_.Write(kMergesFile, "#version: 0.2\n");
  EXPECT_THAT(Refusal(), HasSubstr("the run's merges: "));
}

TEST_F(LineTranslatorTest, SaysWhatIsMissing) {
  setup_.longest = 1;
  EXPECT_THAT(Refusal(), HasSubstr("--longest 1"));
  setup_.longest = 20;
  setup_.config.beam = 0;
  EXPECT_THAT(Refusal(), HasSubstr("--beam 0"));
  setup_.config.beam = 3;
  setup_.config.model = "wrn-10-1";
  EXPECT_THAT(Refusal(), HasSubstr("is no network for translation"));
  setup_.config.model = "dynamicconv-tiny";
  setup_.config.budget_bytes = 1000;
  EXPECT_THAT(Refusal(), HasSubstr("a smaller --longest needs less memory"));
  setup_.config.budget_bytes = 0;
  folder_.Write(kTargetDictionaryFile, "other 1\nwords 1\nthan 1\nbefore 1\n");
  EXPECT_THAT(Refusal(), HasSubstr("decoder.embed_"));
  folder_.Write(kTargetDictionaryFile, "");
  EXPECT_THAT(Refusal(), HasSubstr("the run's dictionary: "));
}

}  // namespace
}  // namespace thimble
