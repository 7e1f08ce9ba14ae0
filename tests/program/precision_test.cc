#include "thimble/program/precision/precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

UpdateSpec Changed(const Technique& technique, const std::string& value, UpdateSpec update = {}) {
  EXPECT_TRUE(technique.ChangeUpdate(value, /*in_parts=*/false, update).ok());
  return update;
}

TEST(PrecisionTechnique, ShortStateIsRoundedAtRandom) {
  const auto precision = MakePrecision();
  EXPECT_TRUE(Changed(*precision, "fp16").stochastic_rounding);
  EXPECT_TRUE(Changed(*precision, "bf16").stochastic_rounding);
  EXPECT_FALSE(Changed(*precision, "mixed16").stochastic_rounding);
  EXPECT_TRUE(Changed(*MakeStore(), "optimizer=q8").stochastic_rounding);
  EXPECT_FALSE(Changed(*MakeStore(), "activations=fp16").stochastic_rounding);
}

TEST(PrecisionTechnique, RoundingAtRandomCanBeSwitchedOff) {
  EXPECT_FALSE(
      Changed(*MakeStochasticRounding(), "off", {.stochastic_rounding = true}).stochastic_rounding);
}

TEST(PrecisionTechnique, ErrorsOfWeightsInBf16Return) {
  const auto precision = MakePrecision();
  EXPECT_TRUE(Changed(*precision, "bf16").error_feedback);
  EXPECT_FALSE(Changed(*precision, "fp16").error_feedback);
  EXPECT_FALSE(Changed(*precision, "mixed16").error_feedback);
  const auto store = MakeStore();
  const UpdateSpec bf16{.error_feedback = true};
  EXPECT_TRUE(Changed(*store, "model=bf16").error_feedback);
  EXPECT_FALSE(Changed(*store, "model=fp32", bf16).error_feedback);
  EXPECT_TRUE(Changed(*store, "optimizer=q8", bf16).error_feedback);
  EXPECT_FALSE(Changed(*MakeErrorFeedback(), "off", bf16).error_feedback);
  EXPECT_TRUE(Changed(*MakeErrorFeedback(), "on").error_feedback);
  const UpdateSpec random{.stochastic_rounding = true, .error_feedback = true};
  EXPECT_FALSE(Changed(*MakeStochasticRounding(), "off", random).error_feedback);
}

// They return through the momentum of sgd.
TEST(PrecisionTechnique, ErrorsDoNotReturnThroughAdam) {
  const UpdateSpec adam{.optimizer = {.name = "adam"}};
  EXPECT_FALSE(Changed(*MakePrecision(), "bf16", adam).error_feedback);
  EXPECT_TRUE(Changed(*MakePrecision(), "bf16", adam).stochastic_rounding);
  EXPECT_FALSE(Changed(*MakeErrorFeedback(), "off", adam).error_feedback);
  UpdateSpec changed = adam;
  const auto asked = MakeErrorFeedback()->ChangeUpdate("on", /*in_parts=*/false, changed);
  ASSERT_FALSE(asked.ok());
  EXPECT_THAT(asked.error().message,
              testing::HasSubstr("through the momentum of --optimizer sgd, not adam"));
}

TEST(PrecisionTechnique, IsLossyUnlessPlain) {
  for (const auto& technique : {MakePrecision(), MakeStore()}) {
    const Lever& lever = *technique->lever();
    EXPECT_EQ(lever.exactness(Graph(), {.value = lever.plain}), "same-bits");
    EXPECT_EQ(lever.exactness(Graph(), {.value = "optimizer=q8"}), "lossy");
  }
}

}  // namespace
}  // namespace thimble
