#include "thimble/exec/measured_holdings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/exec/planted_kernel.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// x -> p = planted -> y = relu, the output; and a parameter w, which is filled on request.
struct MeasuredRun {
  explicit MeasuredRun(void (*kernel)(const KernelCall&), size_t written_of_w = 20) : run(kernel) {
    const ValueId p = run.Append("planted", "p", run.Input(PlantedRun::kPadded));
    run.Output(run.Append("relu", "y", p));
    run.graph().AddValue({"w", {5}, DType::kF32, Role::kParameter, {}, {}});
    Executor& executor = run.Run();
    std::memset(executor.ResidentBytes("w").data(), 1, written_of_w);
    executor.ScanArena();
    planned = Holdings(executor.program().plans[0]);
    measured = MeasuredHoldings(planned, executor.audit());
  }
  std::vector<std::string> Differences() const {
    std::vector<std::string> lines;
    for (const HoldingDifference& difference : DifferencesOf(planned, measured)) {
      lines.push_back(ToString(difference));
    }
    return lines;
  }

  PlantedRun run;
  std::vector<Holding> planned;
  std::vector<Holding> measured;
};

TEST(MeasuredHoldings, AreThePlannedOnesWhereAllIsWell) {
  const MeasuredRun run(&CopyInput);
  EXPECT_EQ(run.planned, run.measured);
  EXPECT_THAT(run.Differences(), IsEmpty());
}

TEST(MeasuredHoldings, CoverEveryValueOfATraining) {
  SmallTraining training;
  training.Run(kTrain, 1);
  Executor& executor = training.executor();
  executor.ScanArena();
  const auto planned = Holdings(executor.program().plans[kTrain]);
  EXPECT_EQ(MeasuredHoldings(planned, executor.audit()), planned);
}

TEST(MeasuredHoldings, OfAPlanThatWasAuditedBefore) {
  SmallTraining training;
  training.Run(kTrain, 1);
  Executor& executor = training.executor();
  const std::vector<size_t> buffers = executor.audit().measured_buffers();
  training.Run(kEvaluate, 1);
  executor.ScanArena();
  const auto planned = Holdings(executor.program().plans[kTrain]);
  EXPECT_EQ(MeasuredHoldings(planned, buffers, executor.audit()), planned);
}

TEST(MeasuredHoldings, NameAValueThatReachesTooFar) {
  const MeasuredRun run(&WriteOneWordTooMany);
  EXPECT_THAT(run.Differences(),
              ElementsAre("activations 'p' of layer p in steps [0, 2): 80 bytes planned, "
                          "84 measured"));
}

// The following relu passes the missing word on and is reported, too.
TEST(MeasuredHoldings, NameAValueThatIsNotWrittenToItsEnd) {
  const MeasuredRun run(&WriteOneWordTooFew);
  EXPECT_THAT(
      run.Differences(),
      ElementsAre("activations 'p' of layer p in steps [0, 2): 80 bytes planned, 76 measured",
                  "activations 'y' of layer y in steps [1, 2): 80 bytes planned, 76 measured"));
}

TEST(MeasuredHoldings, NameResidentsLikewise) {
  EXPECT_THAT(MeasuredRun(&CopyInput, 16).Differences(),
              ElementsAre("model 'w' in steps [0, 2): 20 bytes planned, 16 measured"));
  EXPECT_THAT(MeasuredRun(&CopyInput, 24).Differences(),
              ElementsAre("model 'w' in steps [0, 2): 20 bytes planned, 24 measured"));
}

TEST(MeasuredHoldings, ResidentsAreZeroBeforeTheFirstScan) {
  PlantedRun run(&CopyInput);
  run.Output(run.Append("planted", "p", run.Input(PlantedRun::kPadded)));
  run.graph().AddValue({"w", {5}, DType::kF32, Role::kParameter, {}, {}});
  const Executor& executor = run.Run();
  EXPECT_THAT(executor.audit().measured_residents(), ElementsAre(0U));
}

TEST(MeasuredHoldingsDeathTest, ListsOfDifferentPlansCannotBeCompared) {
  MeasuredRun run(&CopyInput);
  EXPECT_DEATH(DifferencesOf(run.planned, {}), "holdings");
  std::vector<Holding> others = run.planned;
  others.front().name = "nobody";
  EXPECT_DEATH(MeasuredHoldings(others, run.run.executor().audit()), "no resident 'nobody'");
}

}  // namespace
}  // namespace thimble
