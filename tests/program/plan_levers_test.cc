#include "thimble/program/plan_levers.h"

#include <gtest/gtest.h>

#include "thimble/program/techniques.h"

namespace thimble {
namespace {

using Values = std::vector<std::string>;

TEST(PlanLevers, RecomputeIsWorthTryingWhereLittleIsRebuilt) {
  const Lever& recompute = *FindLever("recompute");
  EXPECT_EQ(recompute.worth_trying({"none", 100}), (Values{"blocks", "optimal"}));
  EXPECT_EQ(recompute.worth_trying({"cheap", 100}), (Values{"blocks", "optimal"}));
  EXPECT_EQ(recompute.worth_trying({"blocks", 100}), Values{});
  EXPECT_TRUE(recompute.check("optimal:8MB").ok());
  EXPECT_FALSE(recompute.check("some").ok());
}

TEST(PlanLevers, OnlyWinogradRoundsDifferently) {
  const Lever& conv = *FindLever("conv");
  EXPECT_EQ(conv.exactness(Graph(), {"direct", 8}), "same-bits");
  EXPECT_EQ(conv.exactness(Graph(), {"winograd", 8}), "equal");
  EXPECT_FALSE(conv.worth_trying);  // it saves time, not bytes
}

TEST(PlanLevers, LessScratchThanThereIs) {
  const Lever& scratch = *FindLever("scratch");
  EXPECT_EQ(scratch.worth_trying({"1048576", 8}), (Values{"64KiB", "128KiB", "256KiB", "512KiB"}));
  EXPECT_EQ(scratch.worth_trying({"100KiB", 8}), (Values{"64KiB"}));
  EXPECT_EQ(scratch.worth_trying({"16KiB", 8}), Values{});
}

}  // namespace
}  // namespace thimble
