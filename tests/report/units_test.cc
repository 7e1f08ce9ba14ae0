#include "thimble/report/units.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(Units, CountsHaveCommas) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1000), "1,000");
  EXPECT_EQ(CountText(1467610), "1,467,610");
  EXPECT_EQ(CountText(-123456), "-123,456");
  EXPECT_EQ(CountText(-123), "-123");
}

TEST(Units, ArithmeticHasTheNearestUnit) {
  EXPECT_EQ(FlopsText(0), "0.00 kFLOP");
  EXPECT_EQ(FlopsText(2'500'000), "2.50 MFLOP");
  EXPECT_EQ(FlopsText(129'720'000'000), "129.72 GFLOP");
  EXPECT_EQ(FlopsText(3'000'000'000'000), "3.00 TFLOP");
}

TEST(Units, SharesAndRatiosOfNothingAreEmpty) {
  EXPECT_EQ(ShareText(1, 4), "25.0 %");
  EXPECT_EQ(ShareText(1, 0), "");
  EXPECT_EQ(RatioText(484.3, 393.8), "1.23x");
  EXPECT_EQ(RatioText(1, 0), "");
}

TEST(Units, BytesAreDecimal) { EXPECT_EQ(BytesText(393798272), "393.80 MB"); }

}  // namespace
}  // namespace thimble
