#include "thimble/train/planning/decoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/small_translator.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

TEST(DecodingPlans, ABudgetMeansFewerSentencesAtATime) {
  TrainConfig config = SmallConfig();
  config.batch = 300;
  const auto whole = MakeTranslationProgram(config, SmallSpec(), kLongest, BuiltinOps());
  ASSERT_TRUE(whole.ok());
  config.budget_bytes = static_cast<int64_t>(whole->program.arena_bytes) / 2;
  const auto small = MakeTranslationProgram(config, SmallSpec(), kLongest, BuiltinOps());
  ASSERT_TRUE(small.ok());
  EXPECT_LE(static_cast<int64_t>(small->program.arena_bytes), config.budget_bytes);
  EXPECT_LT(small->decoding->For(8).shape.samples, whole->decoding->For(8).shape.samples);
  EXPECT_GE(small->decoding->For(kLongest).shape.samples, 1);
}

TEST(DecodingPlans, EachLengthHasTheNextLargerPlan) {
  const auto program = MakeTranslationProgram(SmallConfig(), SmallSpec(), kLongest, BuiltinOps());
  ASSERT_TRUE(program.ok());
  const auto length_for = [&](int64_t tokens) {
    return program->decoding->For(tokens).shape.source_length;
  };
  EXPECT_EQ(length_for(1), 8);
  EXPECT_EQ(length_for(8), 8);
  EXPECT_EQ(length_for(9), 16);
  EXPECT_EQ(length_for(25), kLongest);
  EXPECT_EQ(length_for(kLongest), kLongest);
}

TEST(DecodingPlans, TheDictionaryMustHaveEnoughWords) {
  TrainConfig config = SmallConfig();
  config.beam = 20;  // 40 candidates of 38 words
  const auto program = MakeTranslationProgram(config, SmallSpec(), kLongest, BuiltinOps());
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().kind, ErrorKind::kBadInput);
}

}  // namespace
}  // namespace thimble
