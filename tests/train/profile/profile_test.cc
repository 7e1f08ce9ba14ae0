#include "thimble/train/profile/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/made_profile.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

size_t Of(const CategoryBytes& bytes, Category category) {
  return bytes[static_cast<size_t>(category)];
}

TEST(Profile, AccountsForBothSidesAlike) {
  const Profile profile = ProfileWithDifference();
  const MemoryAccount planned = PlannedAccount(profile);
  const MemoryAccount measured = MeasuredAccount(profile);
  EXPECT_EQ(planned.peak_step, 2U);
  EXPECT_EQ(Total(planned.at_peak), 3764U);
  EXPECT_EQ(planned.gap_bytes, 332U);
  EXPECT_EQ(measured.gap_bytes, 328U);
  EXPECT_EQ(measured.at_step[0], planned.at_step[0]);
  EXPECT_EQ(Of(measured.at_step[1], Category::kActivations), 3004U);
}

TEST(Profile, OpsAreAddedUpLongestFirst) {
  const std::vector<OpProfile> ops = ByOp(MadeProfile());
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_EQ(ops[0].op, "sgd");
  const auto scale =
      std::find_if(ops.begin(), ops.end(), [](const OpProfile& op) { return op.op == "scale"; });
  ASSERT_NE(scale, ops.end());
  EXPECT_EQ(scale->calls, 2);
  EXPECT_DOUBLE_EQ(scale->seconds, 0.003);
  EXPECT_EQ(scale->flops, 20'000'000);
  EXPECT_EQ(scale->moved_bytes, 2'000'000);
  const OpProfile total = Total(ops);
  EXPECT_EQ(total.op, "all");
  EXPECT_EQ(total.calls, 4);
  EXPECT_DOUBLE_EQ(total.seconds, 0.010);
  EXPECT_EQ(total.flops, 40'000'000);
}

TEST(Profile, LayersHaveTheirBytesAtThePeakAndTheirTime) {
  const std::vector<LayerProfile> layers = ByLayer(ProfileWithDifference());
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].planned.name, "first");
  EXPECT_EQ(Of(layers[0].planned.at_peak, Category::kModel), 400U);
  EXPECT_EQ(layers[0].planned.at_peak, layers[0].measured);
  EXPECT_DOUBLE_EQ(layers[0].forward_seconds, 0.001);
  EXPECT_DOUBLE_EQ(layers[0].backward_seconds, 0);
  EXPECT_DOUBLE_EQ(layers[0].update_seconds, 0.004);
  EXPECT_EQ(layers[1].planned.name, "second");
  EXPECT_EQ(Total(layers[1].planned.at_peak), 2300U);
  EXPECT_EQ(Total(layers[1].measured), 2304U);
  EXPECT_DOUBLE_EQ(layers[1].backward_seconds, 0.003);
  EXPECT_EQ(layers[1].planned.step_flops, 30'000'000);
  EXPECT_EQ(layers[2].planned.name, "");  // last, although the batch comes before all steps
  EXPECT_EQ(Of(layers[2].planned.at_peak, Category::kData), 64U);
}

TEST(Profile, LayersOfTheUpdateAloneHaveTheirTime) {
  Profile profile = MadeProfile();
  OtherPlan update{.record = {}, .measured_holdings = {}, .op_seconds = {0.25}};
  update.record.steps = {ProfileStep("clip", "clip", "update", 7)};
  profile.others.push_back(update);
  const std::vector<LayerProfile> layers = ByLayer(profile);
  ASSERT_EQ(layers.size(), 4U);
  EXPECT_EQ(layers[2].planned.name, "clip");
  EXPECT_EQ(Total(layers[2].planned.at_peak), 0U);
  EXPECT_EQ(layers[2].planned.step_flops, 7);
  EXPECT_DOUBLE_EQ(layers[2].update_seconds, 0.25);
  EXPECT_EQ(layers[3].planned.name, "");
  EXPECT_EQ(Of(layers[3].planned.at_peak, Category::kData), 64U);
}

TEST(Profile, LayersTogetherAreTheCategories) {
  const Profile profile = ProfileWithDifference();
  const MemoryAccount planned = PlannedAccount(profile);
  CategoryBytes planned_sum{};
  CategoryBytes measured_sum{};
  for (const LayerProfile& layer : ByLayer(profile)) {
    for (size_t i = 0; i < kNumCategories; ++i) {
      planned_sum[i] += layer.planned.at_peak[i];
      measured_sum[i] += layer.measured[i];
    }
  }
  EXPECT_EQ(planned_sum, planned.at_peak);
  EXPECT_EQ(measured_sum, MeasuredAccount(profile).at_step[planned.peak_step]);
}

TEST(Profile, IsAcceptedWhereNothingDiffers) {
  EXPECT_THAT(DifferencesOf(MadeProfile()), IsEmpty());
  EXPECT_TRUE(CheckProfile(MadeProfile()).ok());
  EXPECT_DOUBLE_EQ(MadeProfile().examples_per_second(), 800);
}

TEST(Profile, NamesWhatDiffers) {
  EXPECT_THAT(DifferencesOf(ProfileWithDifference()),
              ElementsAre("activations 'z' of layer second in steps [1, 3): 2000 bytes planned, "
                          "2004 measured"));
  const auto check = CheckProfile(ProfileWithDifference());
  ASSERT_FALSE(check.ok());
  EXPECT_EQ(ExitCode(check.error()), 1);
  EXPECT_THAT(check.error().message, HasSubstr("activations 'z' of layer second"));
}

TEST(Profile, NamesTotalsThatDiffer) {
  Profile profile = MadeProfile();
  profile.allocated_bytes += 64;
  profile.measured_peak_bytes -= 4;
  EXPECT_THAT(DifferencesOf(profile), ElementsAre("arena: 4096 bytes planned, 4160 allocated",
                                                  "peak: 4090 bytes planned, 4086 measured"));
}

TEST(Profile, RepeatsTheFaultsOfTheAudit) {
  Profile profile = MadeProfile();
  profile.faults = {"byte 339 belongs to no buffer and was written"};
  EXPECT_THAT(DifferencesOf(profile), ElementsAre(profile.faults[0]));
}

TEST(Profile, RefusesAllocationsInSteps) {
  Profile profile = MadeProfile();
  profile.map_calls_in_steps = 2;
  EXPECT_THAT(DifferencesOf(profile), ElementsAre(HasSubstr("0 heap and 2 mapping calls")));
  profile.host_may_allocate = true;
  EXPECT_THAT(DifferencesOf(profile), IsEmpty());
  profile.device_allocations_in_steps = 3;
  EXPECT_THAT(DifferencesOf(profile),
              ElementsAre(HasSubstr("device memory was allocated or freed during steps: 3 calls")));
}

// Three runs of the made plan and one of an update.
Profile ProfileInParts() {
  Profile profile = MadeProfile();
  profile.record.name = "train 4 of 12";
  profile.record.runs_per_step = 3;
  OtherPlan update;
  update.record.name = "update 12";
  update.record.step_flops = 500;
  update.record.steps = {ProfileStep("sgd", "first", "update", 500)};
  update.record.holdings = {MadeHolding("first", "first", Category::kModel, 400, {0, 1})};
  update.measured_holdings = update.record.holdings;
  update.op_seconds = {0.002};
  profile.others = {update};
  return profile;
}

TEST(Profile, AStepIsAllRunsOfItsPlans) {
  const Profile profile = ProfileInParts();
  EXPECT_EQ(profile.step_flops(), 3 * 40'000'000 + 500);
  const OpProfile total = Total(ByOp(profile));
  EXPECT_EQ(total.calls, 3 * 4 + 1);
  EXPECT_EQ(total.flops, profile.step_flops());
  EXPECT_DOUBLE_EQ(total.seconds, 3 * 0.010 + 0.002);
  const std::vector<LayerProfile> layers = ByLayer(profile);
  EXPECT_DOUBLE_EQ(layers[0].update_seconds, 3 * 0.004 + 0.002);
  EXPECT_EQ(layers[0].planned.forward_flops, 3 * 10'000'000);
  EXPECT_EQ(layers[0].planned.step_flops, 3 * 10'000'000 + 500);
  EXPECT_EQ(Of(layers[0].planned.at_peak, Category::kModel), 400U);
}

TEST(Profile, NamesWhatDiffersInOtherPlans) {
  Profile profile = ProfileInParts();
  EXPECT_THAT(DifferencesOf(profile), IsEmpty());
  profile.others[0].measured_holdings[0].size_bytes = 396;
  EXPECT_THAT(DifferencesOf(profile),
              ElementsAre("update 12: model 'first' of layer first in steps [0, 1): 400 bytes "
                          "planned, 396 measured"));
}

}  // namespace
}  // namespace thimble
