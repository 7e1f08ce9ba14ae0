#include "thimble/report/known_peaks.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(KnownPeaks, AreOfOneNetworkAndBatch) {
  ASSERT_TRUE(FindKnownPeak("wrn-28-2", 100).has_value());
  EXPECT_EQ(FindKnownPeak("wrn-28-2", 100)->bytes, 484'300'000);
  EXPECT_FALSE(FindKnownPeak("wrn-28-2", 99).has_value());
  EXPECT_FALSE(FindKnownPeak("wrn-28-10", 100).has_value());
}

}  // namespace
}  // namespace thimble
