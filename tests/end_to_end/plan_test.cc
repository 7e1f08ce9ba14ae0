// `thimble plan` and the other commands that only tell.
#include "tests/end_to_end/thimble_fixture.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class PlanEndToEnd : public ThimbleFixture {};

TEST_F(PlanEndToEnd, BenchmarkModelAsJson) {
  const ProcessResult result = RunWell("plan --model wrn-28-2 --batch 100 --json");
  EXPECT_EQ(result.err, "");
  auto json = ParseObject(result.out);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["parameters"], 1467610);
  const int64_t arena_bytes = json["arena_bytes"];
  EXPECT_GE(arena_bytes, 380'000'000);
  EXPECT_LE(arena_bytes, 405'000'000);
  EXPECT_EQ(json["plain_arena_bytes"], arena_bytes);
  EXPECT_LE(json["lower_bound_bytes"], arena_bytes);
  EXPECT_LT(json["kept_bytes"], arena_bytes);
  int64_t sum = 0;
  for (const char* category :
       {"model", "gradients", "optimizer", "activations", "transient", "data", "gaps"}) {
    ASSERT_TRUE(json["categories"].contains(category)) << category;
    sum += json["categories"][category].get<int64_t>();
  }
  EXPECT_EQ(json["categories"].size(), 7U);
  EXPECT_EQ(sum, arena_bytes);
  ASSERT_FALSE(json["techniques"].empty());
  for (auto& technique : json["techniques"]) {
    EXPECT_EQ(technique["class"], "same-bits") << technique;
  }
  auto& flops = json["flops"];
  EXPECT_GT(flops["forward"], 0);
  EXPECT_GT(flops["step"], 2 * flops["forward"].get<int64_t>());
  EXPECT_EQ(flops["recompute"], 0);
}

// Planning allocates nothing of what it plans.
TEST_F(PlanEndToEnd, IsQuickAndSmall) {
  if (kSanitized) GTEST_SKIP() << "measures the program itself, not the sanitizer";
  const ProcessResult result = RunWell("plan --model wrn-28-2 --batch 100");
  EXPECT_LT(result.seconds, 1);
  EXPECT_LT(result.peak_bytes, 16 << 20);
}

TEST_F(PlanEndToEnd, OverBudget) {
  const ProcessResult result = Run("plan --model wrn-28-2 --batch 100 --budget 8MB --json");
  ExpectRefusal(result, 3, "are missing", "plan");
  EXPECT_THAT(result.err, HasSubstr("the budget is 8.00 MB"));
  EXPECT_THAT(result.err, HasSubstr("largest at the peak: block"));
  EXPECT_EQ(ParseObject(result.out)["fits"], false);
  ExpectRefusal("plan --budget 8MB", 3, "does not fit");
  ExpectRefusal("train --model wrn-10-1 --data shapes:20,5 --budget 1MB --out @/run", 3,
                "does not fit");
  EXPECT_FALSE(std::filesystem::exists(At("run")));
}

TEST_F(PlanEndToEnd, WithinBudget) {
  const ProcessResult result = RunWell("plan --model wrn-10-1 --batch 4 --budget 1GB");
  EXPECT_THAT(result.out, HasSubstr("fits the budget of 1.000 GB"));
  EXPECT_EQ(result.err, "");
}

// A budget of exactly what is needed fits; one byte less does not.
TEST_F(PlanEndToEnd, BudgetToTheByte) {
  const std::string command = "plan --model wrn-10-1 --batch 4 --data shapes:8,4 --json";
  const int64_t needed = ParseObject(RunWell(command).out)["arena_bytes"];
  RunWell(command + " --budget " + std::to_string(needed));
  EXPECT_EQ(Run(command + " --budget " + std::to_string(needed - 1)).exit_code, 3);
}

TEST_F(PlanEndToEnd, LeavingPassesOutCosts) {
  const std::string command = "plan --model wrn-10-1 --batch 4 --json";
  auto with = ParseObject(RunWell(command).out);
  auto without = ParseObject(RunWell(command + " --without placement,in-place").out);
  EXPECT_GT(without["arena_bytes"], with["arena_bytes"]);
  EXPECT_EQ(without["plain_arena_bytes"], with["arena_bytes"]);
}

TEST_F(PlanEndToEnd, SaysWhenResultsAreEqualToRoundingOnly) {
  EXPECT_THAT(RunWell("plan --batch 10").out, Not(HasSubstr("rounding")));
  EXPECT_THAT(RunWell("plan --batch 10 --conv winograd").out,
              HasSubstr("winograd for 66 of 251 nodes: equal to rounding"));
  const auto plan = ParseObject(RunWell("plan --batch 10 --conv winograd --json").out);
  EXPECT_EQ(plan["techniques"][0]["name"], "kernels");
  EXPECT_EQ(plan["techniques"][0]["class"], "equal");
  EXPECT_LT(plan["plain_arena_bytes"], plan["arena_bytes"]);
}

TEST_F(PlanEndToEnd, CifarNeedsNoFilesToPlan) {
  RunWell("plan --model wrn-10-1 --data cifar10");
  RunWell("plan --model wrn-10-1 --data cifar100:/nowhere");
}

TEST_F(PlanEndToEnd, CommandsThatTell) {
  EXPECT_THAT(RunWell("models").out, HasSubstr("wrn-"));
  EXPECT_FALSE(ParseObject(RunWell("models --json").out)["simd"].empty());
  EXPECT_THAT(RunWell("data --data shapes:20,5").out, HasSubstr("20 train, 0 validation, 5 test"));
  EXPECT_EQ(ParseObject(RunWell("data --data shapes:20,5 --json").out)["test"], 5);
  EXPECT_THAT(RunWell("--help").out, HasSubstr("train"));
  EXPECT_THAT(RunWell("train --help").out, HasSubstr("--budget"));
  EXPECT_THAT(RunWell("--version").out, testing::MatchesRegex("[0-9.]+\n"));
}

}  // namespace
}  // namespace thimble
