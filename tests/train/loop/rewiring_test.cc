#include "thimble/train/loop/rewiring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "tests/train/tiny_run.h"
#include "thimble/program/sparsity/pack_graph.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// The steps after which weights are rewired.
std::vector<int64_t> Steps(int64_t num_steps, int64_t every = 0) {
  std::vector<int64_t> steps;
  for (int64_t step = 0; step <= num_steps; ++step) {
    if (RewiresAfter(step, num_steps, every)) steps.push_back(step);
  }
  return steps;
}

// 200 epochs of 500 steps: as in the paper.
TEST(RewiresAfter, FollowsThePaper) {
  const std::vector<int64_t> steps = Steps(100'000);
  const auto count = [&](int64_t first_epoch, int64_t end_epoch) {
    return std::ranges::count_if(
        steps, [&](int64_t step) { return step >= first_epoch * 500 && step < end_epoch * 500; });
  };
  EXPECT_EQ(steps.front(), 100);
  EXPECT_EQ(count(0, 25), 25 * 5 - 1);  // not at step 0
  EXPECT_EQ(count(25, 80), 55 * 500 / 200);
  EXPECT_EQ(count(80, 140), 60 * 500 / 400);
  EXPECT_EQ(count(140, 190), (95'000 - 1) / 800 - (70'000 - 1) / 800);
  EXPECT_EQ(count(190, 201), 0);
}

TEST(RewiresAfter, ShortRunsHaveTimeForNewWeights) {
  EXPECT_TRUE(Steps(20).empty());
  const std::vector<int64_t> steps = Steps(1000);
  EXPECT_EQ(steps.front(), kLeastStepsApart);
  EXPECT_LE(steps.back(), 950);
}

TEST(RewiresAfter, AFixedIntervalHoldsForTheWholeRun) {
  EXPECT_EQ(Steps(7, 3), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(Steps(2, 1), (std::vector<int64_t>{1, 2}));
}

TrainConfig SparseConfig(const std::string& method) {
  TrainConfig config = TinyConfig();
  config.levers = {{"sparsity", "0.5"}, {"sparse-method", method}};
  return config;
}

Rewiring RewiringOf(TinyRun& run) {
  return {*run.executor, run.program.RewirePlan(), run.program.update.sparsity, 1000};
}

TEST(Rewiring, DenseAndStaticRunsHaveNone) {
  TinyRun dense;
  EXPECT_FALSE(RewiringOf(dense).IsDueAfter(25));
  TinyRun fixed(SparseConfig("static"));
  EXPECT_FALSE(fixed.program.RewirePlan());
  EXPECT_FALSE(RewiringOf(fixed).IsDueAfter(25));
}

TEST(Rewiring, ReportsWhatMoved) {
  for (const char* method : {"dsr", "set"}) {
    TinyRun run(SparseConfig(method));
    Rewiring rewiring = RewiringOf(run);
    EXPECT_TRUE(rewiring.IsDueAfter(25));
    const auto pool = static_cast<int64_t>(run.executor->ResidentBytes(kSparseWeights).size() / 4);
    const RewiringReport report = rewiring.Run(25);
    EXPECT_GT(report.moved, 0) << method;
    EXPECT_EQ(std::accumulate(report.active.begin(), report.active.end(), int64_t{0}), pool);
    EXPECT_EQ(report.active.size(), 6U);
    EXPECT_TRUE(CheckPatternOf(*run.executor).ok());
    EXPECT_TRUE(run.executor->audit().faults().empty());
  }
}

TEST(CheckPatternOf, FindsAPatternThatDoesNotFit) {
  const TinyRun run(SparseConfig("dsr"));
  EXPECT_TRUE(CheckPatternOf(*run.executor).ok());
  const auto bytes = run.executor->ResidentBytes(kSparsePattern);
  bytes[0] ^= std::byte{1};
  EXPECT_FALSE(CheckPatternOf(*run.executor).ok());
  EXPECT_TRUE(CheckPatternOf(*TinyRun().executor).ok()) << "a dense run has none";
}

}  // namespace
}  // namespace thimble
