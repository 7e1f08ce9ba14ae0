// The plans of the built-in networks: near the lower bound, every byte accounted for, every pass
// useful.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/memory/accounting.h"
#include "thimble/plan/verify_plan.h"

namespace thimble {
namespace {

// Maximum distance from the live bytes at the peak: padding and losses of packing.
constexpr double kMaxGap = 0.03;

struct ModelCase {
  const char* model;
  int64_t batch;
};

class PipelineModelsTest : public testing::TestWithParam<ModelCase> {
 protected:
  static Plan MakeTrainingPlan(std::set<std::string> skipped = {}) {
    PlanOptions options;
    options.limits.threads = 2;
    options.skipped_passes = std::move(skipped);
    return PlanGraph(TrainingGraph(GetParam().model, GetParam().batch), options);
  }
};

TEST_P(PipelineModelsTest, ArenaIsNearTheLowerBound) {
  const Plan plan = MakeTrainingPlan();
  EXPECT_GE(plan.arena_bytes, plan.lower_bound_bytes);
  const double gap = static_cast<double>(plan.arena_bytes - plan.lower_bound_bytes) /
                     static_cast<double>(plan.lower_bound_bytes);
  RecordProperty("gap_ppm", static_cast<int>(1e6 * gap));
  EXPECT_LE(gap, kMaxGap);
}

TEST_P(PipelineModelsTest, CategoriesAndGapsAreTheArena) {
  const Plan plan = MakeTrainingPlan();
  const MemoryAccount account = Account(plan);
  EXPECT_EQ(Total(account.at_peak) + account.gap_bytes, plan.arena_bytes);
  const auto parameters = static_cast<size_t>(CountParameters(plan.graph)) * sizeof(float);
  const auto at_peak = [&](Category category) {
    return account.at_peak[static_cast<size_t>(category)];
  };
  EXPECT_GT(at_peak(Category::kModel), parameters);  // and the statistics
  EXPECT_EQ(at_peak(Category::kOptimizer), parameters);
  EXPECT_GE(account.kept_bytes, at_peak(Category::kModel) + at_peak(Category::kGradients) +
                                    at_peak(Category::kOptimizer) +
                                    at_peak(Category::kActivations));
  EXPECT_LE(account.kept_bytes, Total(account.at_peak));
}

TEST_P(PipelineModelsTest, SkippingAPassNeverNeedsLess) {
  const Plan plan = MakeTrainingPlan();
  for (const char* pass : {"order", "in-place", "placement"}) {
    const Plan without = MakeTrainingPlan({pass});
    EXPECT_TRUE(VerifyPlan(BuiltinOps(), without).ok()) << pass;
    EXPECT_GE(without.arena_bytes, plan.arena_bytes) << pass;
  }
  EXPECT_GT(2 * MakeTrainingPlan({"placement"}).arena_bytes, 3 * plan.arena_bytes);
}

TEST_P(PipelineModelsTest, PlansAreDeterministic) {
  EXPECT_EQ(MakeTrainingPlan(), MakeTrainingPlan());
}

std::string CaseName(const testing::TestParamInfo<ModelCase>& info) {
  std::string name = fmt::format("{}_batch_{}", info.param.model, info.param.batch);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, PipelineModelsTest,
                         testing::Values(ModelCase{"wrn-10-1", 1}, ModelCase{"wrn-10-1", 10},
                                         ModelCase{"wrn-10-1", 100}, ModelCase{"wrn-16-2", 1},
                                         ModelCase{"wrn-16-2", 10}, ModelCase{"wrn-16-2", 100},
                                         ModelCase{"wrn-28-2", 1}, ModelCase{"wrn-28-2", 10},
                                         ModelCase{"wrn-28-2", 100}),
                         CaseName);

}  // namespace
}  // namespace thimble
