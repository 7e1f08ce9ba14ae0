#include "thimble/report/plots/frontier_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/made_frontier.h"
#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TEST(FrontierPlot, HasADotAndATitleForEachPoint) {
  const std::string svg = FrontierPlot(MadeFrontier(), 640).Inline();
  EXPECT_EQ(CountOf(svg, "<circle"), 3U + 3U);  // and three in the legend
  EXPECT_EQ(CountOf(svg, "<title>"), 3U);
  EXPECT_THAT(svg, HasSubstr("4,000,000 bytes\n1.25 s per step\nlossy, -0.30 points\n"
                             "--precision fp16 --sparsity 0.7</title>"));
  EXPECT_THAT(svg, HasSubstr("400,000,000 bytes\n500 ms per step\nsame-bits\nplain</title>"));
  EXPECT_THAT(svg, HasSubstr(">ms per step; numbers at dots"));
  EXPECT_THAT(svg, HasSubstr(">-0.3</text>"));
  EXPECT_THAT(svg, HasSubstr(">10.00 MB</text>"));
}

TEST(FrontierPlot, DrawsArithmeticWhereTimesAreUnknown) {
  std::vector<FrontierPoint> points = MadeFrontier();
  for (FrontierPoint& point : points) point.step_seconds = 0;
  const std::string svg = FrontierPlot(points, 640).Inline();
  EXPECT_THAT(svg, HasSubstr(">GFLOP per step; numbers at dots"));
  EXPECT_THAT(svg, HasSubstr("1.50 GFLOP per step"));
}

TEST(FrontierPlot, ShowsWhereARunIs) {
  EXPECT_THAT(FrontierPlot(MadeFrontier(), 640, 5'000'000).Inline(), HasSubstr(">this run</text>"));
  EXPECT_EQ(CountOf(FrontierPlot(MadeFrontier(), 640).Inline(), "this run"), 0U);
}

TEST(FrontierPlot, OnePointIsEnough) {
  const std::vector<FrontierPoint> point = {MadeFrontier().front()};
  EXPECT_EQ(CountOf(FrontierPlot(point, 320).Inline(), "<title>"), 1U);
}

}  // namespace
}  // namespace thimble
