// Recompute in the whole program: the same bits as without it, in every combination with other
// techniques, in the planned memory.
#include "tests/end_to_end/profile_checks.h"
#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/cuda_or_skip.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

using testing::HasSubstr;

const Words kStrategies = {"cheap", "blocks", "blocks:2", "sqrt", "optimal"};
const Words kModels = {"wrn-10-1", "wrn-10-1:dropout=0.3", "wrn-10-1:group-norm=8,dropout=0.2"};

class RecomputeEndToEnd : public NoReportFixture {
 protected:
  static std::string Options(const std::string& model, int steps) {
    return fmt::format(
        "train --model {} --data shapes:50,8 --augment crop-flip --batch 8 --lr 0.05 --steps {} "
        "--log-every 1 ",
        model, steps);
  }
  std::string Train(const std::string& options) {
    const std::string run = fmt::format("run{}", runs_++);
    RunWell(options + " --out @/" + run);
    const Json summary = SummaryOf(At(run));
    EXPECT_EQ(summary["planned_peak_bytes"], summary["measured_peak_bytes"]) << options;
    return At(run);
  }
  // Compares every strategy with none, with these additional options.
  void ExpectSameBits(const std::string& options, const Words& strategies,
                      const std::string& more) {
    const std::string plain = Train(options);
    const int64_t plain_bytes = SummaryOf(plain)["arena_bytes"].get<int64_t>();
    for (const std::string& strategy : strategies) {
      SCOPED_TRACE(options + " --recompute " + strategy + more);
      const std::string run = Train(options + " --recompute " + strategy + more);
      ExpectSameRun(plain, run);
      // Without placement nothing shares bytes, and rebuilt values only add to the arena.
      if (options.find("placement") == std::string::npos) {
        EXPECT_LT(SummaryOf(run)["arena_bytes"].get<int64_t>(), plain_bytes);
      }
    }
  }

  int runs_ = 0;
};

TEST_F(RecomputeEndToEnd, EveryStrategyHasTheBitsOfThePlainRun) {
  ExpectSameBits(Options("wrn-10-1", 3), kStrategies, " --threads 1");
  ExpectSameBits(Options(kModels[2], 2), {"optimal"}, " --threads 2");
}

TEST_F(RecomputeEndToEnd, WorksInPartsAndGroups) {
  ExpectSameBits(Options("wrn-10-1", 2) + "--microbatch 5 --bn-group 2", {"optimal"}, "");
}

TEST_F(RecomputeEndToEnd, ARunMayGoOnWithAnotherStrategy) {
  const std::string options = Options("wrn-10-1:dropout=0.3", 6) + "--schedule constant ";
  const std::string whole = Train(options);
  RunWell(Options("wrn-10-1:dropout=0.3", 3) +
          "--schedule constant --recompute blocks --out @/part");
  RunWell(options + "--recompute optimal --resume --extend --out @/part");
  EXPECT_TRUE(WeightsOf(At("part")) == WeightsOf(whole));
}

TEST_F(RecomputeEndToEnd, PlanSaysWhatItCosts) {
  const auto plan =
      ParseObject(RunWell("plan --model wrn-10-1 --batch 20 --recompute optimal --json").out);
  EXPECT_GT(plan["flops"]["recompute"], 0);
  const auto& techniques = plan["techniques"];
  const auto found = std::find_if(techniques.begin(), techniques.end(),
                                  [](const auto& t) { return t["name"] == "recompute"; });
  ASSERT_NE(found, techniques.end());
  EXPECT_EQ((*found)["class"], "same-bits");
  // For the whole batch, and for parts of ten samples and of one.
  const auto& smallest = plan["smallest"];
  ASSERT_EQ(smallest.size(), 3U);
  EXPECT_EQ(smallest[0]["arena_bytes"], plan["arena_bytes"]);
  EXPECT_EQ(smallest[1]["microbatch"], 10);
  EXPECT_EQ(smallest[2]["microbatch"], 1);
  EXPECT_LT(smallest[2]["arena_bytes"], smallest[1]["arena_bytes"]);
  EXPECT_THAT(RunWell("plan --model wrn-10-1 --batch 20").out, HasSubstr("with --microbatch 1 "));
}

TEST_F(RecomputeEndToEnd, ProfileFindsNoDifference) {
  const auto profile = RunWell("profile --model wrn-10-1 --batch 8 --repeat 1 --recompute optimal");
  EXPECT_THAT(profile.out, HasSubstr("planned = measured in every category"));
}

TEST_F(RecomputeEndToEnd, BadInput) {
  const std::string plan = "plan --model wrn-10-1 --batch 8 --recompute ";
  ExpectRefusal(plan + "some", 2, "--recompute some: expected none, cheap, blocks");
  ExpectRefusal(plan + "blocks:0", 2, "--recompute blocks:0: expected a number of blocks");
  ExpectRefusal(plan + "optimal:lots", 2, "--recompute optimal:lots");
  const auto smallest = ParseObject(RunWell(plan + "optimal --json").out)["arena_bytes"];
  const std::string below = fmt::format("optimal:{}", smallest.get<int64_t>() - 1);
  ExpectRefusal(plan + below, 3, fmt::format("{} bytes", smallest.get<int64_t>()));
  ExpectRefusal(
      "train --model wrn-10-1 --data shapes:16,8 --batch 8 --out @/r --recompute " + below, 3,
      "the smallest arena");
  RunWell(plan + fmt::format("optimal:{}", smallest.get<int64_t>()));
}

class SlowRecomputeEndToEnd : public RecomputeEndToEnd {};

TEST_F(SlowRecomputeEndToEnd, AllStrategiesModelsAndThreadsForTwentySteps) {
  for (const std::string& model : kModels) {
    for (const char* threads : {" --threads 1", " --threads 2"}) {
      ExpectSameBits(Options(model, 20), kStrategies, threads);
    }
  }
}

TEST_F(SlowRecomputeEndToEnd, WorksWithEveryOtherTechnique) {
  for (const char* other : {"--microbatch 3", "--bn-group 4", "--conv winograd", "--scratch 64KiB",
                            "--without order,in-place", "--without placement"}) {
    ExpectSameBits(Options("wrn-10-1", 2) + other, kStrategies, "");
  }
}

// Group norm and dropout in parts of every size.
TEST_F(SlowRecomputeEndToEnd, MeasuresWhatWasPlannedForEveryMicrobatch) {
  for (int microbatch = 1; microbatch <= 100; ++microbatch) {
    const auto profile =
        RunWell(fmt::format("profile --model wrn-10-1:group-norm=8,dropout=0.2 --batch 100 "
                            "--repeat 1 --recompute blocks --microbatch {}",
                            microbatch));
    EXPECT_THAT(profile.out, HasSubstr("planned = measured in every category")) << microbatch;
  }
}

class CudaRecomputeEndToEnd : public RecomputeEndToEnd {};

TEST_F(CudaRecomputeEndToEnd, EveryStrategyHasTheBitsOfThePlainRun) {
  THIMBLE_CUDA_OR_SKIP();
  for (const std::string& model : kModels) {
    ExpectSameBits(Options(model, 6) + "--device cuda", kStrategies, "");
    ExpectSameBits(Options(model, 6) + "--device cuda --microbatch 3", {"blocks", "optimal"}, "");
  }
}

}  // namespace
}  // namespace thimble
