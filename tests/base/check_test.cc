#include "thimble/base/check.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Check, PassesWhereTrue) {
  int evaluations = 0;
  THIMBLE_CHECK(++evaluations == 1, "never printed: {}", evaluations);
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, NamesPlaceConditionAndMessage) {
  EXPECT_DEATH(THIMBLE_CHECK(1 == 2, "got {}", 3), "check_test.cc:.*check failed: 1 == 2: got 3");
}

TEST(CheckDeathTest, NeedsNoMessage) {
  EXPECT_DEATH(THIMBLE_CHECK(1 == 2), "check failed: 1 == 2\n");
}

#ifdef NDEBUG
TEST(Dcheck, IsNotEvaluatedInReleaseBuilds) {
  [[maybe_unused]] int evaluations = 0;
  THIMBLE_DCHECK(++evaluations == 2);
  EXPECT_EQ(evaluations, 0);
}
#else
TEST(CheckDeathTest, DebugBuildsCheckMore) {
  EXPECT_DEATH(THIMBLE_DCHECK(1 == 2, "debug"), "check failed: 1 == 2: debug");
}
#endif

}  // namespace
}  // namespace thimble
