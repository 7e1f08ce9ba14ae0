#include "thimble/train/translate/measure_bleu.h"

#include <gtest/gtest.h>

#include "tests/train/small_translator.h"
#include "thimble/data/text/bleu.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/translate/batch_translator.h"

namespace thimble {
namespace {

constexpr int64_t kLongestNumber = 64;

// A random network for `numbers`.
struct NumbersTranslator {
  NumbersTranslator() {
    TranslatorSpec spec = SmallSpec();
    spec.source_words = data.test->source_dictionary().size();
    spec.target_words = data.test->target_dictionary().size();
    program = MakeTranslationProgram(SmallConfig(), spec, kLongestNumber, BuiltinOps()).value();
    executor = Executor::CreateFor(program.program, BuiltinOps()).value();
    const auto network = BuildTranslator(spec, BuiltinOps(), {1, 1, 1}, Mode::kTrain);
    InitializeResidents(*executor, network->inits, /*seed=*/1);
  }

  TextData data = OpenTextData("numbers:50,20", {}).value();
  TrainingProgram program;
  std::unique_ptr<Executor> executor;
};

TEST(MeasureBleu, ComparesEachTranslationWithItsReference) {
  NumbersTranslator numbers;
  const SearchOptions options = SearchOptionsOf(SmallConfig());
  const auto score =
      MeasureBleu(*numbers.executor, *numbers.program.decoding, options, *numbers.data.test);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->sentences, 20);
  EXPECT_GE(score->seconds, 0);
  int64_t exact = 0;
  Bleu tokenized(BleuKind::kTokenized);
  Bleu sacre(BleuKind::kSacre13a);
  BatchTranslator translator(*numbers.executor, *numbers.program.decoding, options);
  for (int64_t i = 0; i < 20; ++i) {
    const PairLength length = numbers.data.test->LengthAt(i);
    std::vector<WordIds> source = {WordIds(static_cast<size_t>(length.source))};
    WordIds target(static_cast<size_t>(length.target));
    ASSERT_TRUE(numbers.data.test->Read(i, source[0], target).ok());
    const std::string line =
        numbers.data.test->target_dictionary().Line(translator.Translate(source)[0].words);
    tokenized.Add(line, numbers.data.test->TargetLine(i).value());
    sacre.Add(line, numbers.data.test->TargetLine(i).value());
    exact += line == numbers.data.test->TargetLine(i).value() ? 1 : 0;
  }
  EXPECT_EQ(score->bleu, tokenized.Score());
  EXPECT_EQ(score->sacrebleu, sacre.Score());
  EXPECT_EQ(score->exact, exact);
}

}  // namespace
}  // namespace thimble
