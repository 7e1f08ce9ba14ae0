#include "thimble/report/plots/curve_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Drawn(const CurveChart& chart) { return CurvePlot(chart, 400).Inline(); }

TEST(CurvePlot, NamesEachCurveWithItsLastValue) {
  const std::string svg = Drawn(
      {"accuracy",
       "%",
       {{"train", 0, {{10, 50}, {20, 75}}, false}, {"test", 1, {{10, 45}, {20, 62.5}}, false}}});
  EXPECT_THAT(svg, HasSubstr(">accuracy, %</text>"));
  EXPECT_THAT(svg, HasSubstr(">train 75.00 %</text>"));
  EXPECT_THAT(svg, HasSubstr(">test 62.50 %</text>"));
  EXPECT_THAT(svg, HasSubstr("<title>step 10\ntrain 50.00 %\ntest 45.00 %</title>"));
  EXPECT_EQ(CountOf(svg, "<path "), 2U);
}

TEST(CurvePlot, LabelsDoNotTouch) {
  CurveChart chart{"loss", "", {}};
  for (size_t i = 0; i < 6; ++i) chart.curves.push_back({"c", i, {{1, 1}, {2, 1.001}}, false});
  const std::string svg = Drawn(chart);
  std::vector<double> ys;
  for (size_t at = svg.find(" label\""); at != std::string::npos;
       at = svg.find(" label\"", at + 1)) {
    ys.push_back(std::stod(svg.substr(svg.find("y=\"", at) + 3)));
  }
  ASSERT_EQ(ys.size(), 6U);
  std::sort(ys.begin(), ys.end());
  for (size_t i = 1; i < ys.size(); ++i) EXPECT_GE(ys[i] - ys[i - 1], 12.9);
  EXPECT_LT(ys.back(), 230);
}

TEST(CurvePlot, OnePointIsADot) {
  const std::string svg = Drawn({"loss", "", {{"train", 0, {{3, 2.25}}, false}}});
  EXPECT_THAT(svg, HasSubstr("<circle class=\"ink-0\""));
  EXPECT_THAT(svg, Not(HasSubstr("<path ")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(CurvePlot, DecadesGetALogarithmicAxis) {
  EXPECT_THAT(Drawn({"loss", "", {{"", 0, {{1, 2}, {2, 0.002}}, false}}}),
              HasSubstr(">loss, logarithmic</text>"));
  EXPECT_THAT(Drawn({"loss", "", {{"", 0, {{1, 2}, {2, 0.2}}, false}}}), HasSubstr(">loss</text>"));
  EXPECT_THAT(Drawn({"loss", "", {{"", 0, {{1, 2}, {2, 0}}, false}}}), HasSubstr(">loss</text>"));
}

TEST(CurvePlot, SharesAndAxesFromZeroStayLinear) {
  EXPECT_THAT(Drawn({"accuracy", "%", {{"", 0, {{1, 1}, {2, 90}}, false}}}),
              HasSubstr(">accuracy, %</text>"));
  EXPECT_THAT(Drawn({"rate", "", {{"", 0, {{1, 0.1}, {2, 0.0001}}, false}}, true}),
              HasSubstr(">rate</text>"));
}

TEST(CurvePlot, FlatCurvesAndNothingAtAll) {
  EXPECT_THAT(Drawn({"rate", "", {{"", 0, {{1, 0.1}, {2, 0.1}}, false}}, true}),
              Not(HasSubstr("nan")));
  EXPECT_THAT(Drawn({"rate", "", {{"", 0, {{1, 0}, {2, 0}}, false}}}), Not(HasSubstr("nan")));
  EXPECT_THAT(Drawn({"rate", "", {}}), Not(HasSubstr("<circle")));
}

TEST(CurvePlot, HugeNumbersAndHostileNames) {
  const std::string svg =
      Drawn({"<i>", "", {{"<script>", 0, {{1, -1e308}, {9e15, 1e308}}, false}}});
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<i>")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(CurvePlot, NoLogarithmicAxisForWhatHasNoRatio) {
  for (const auto& [low, high] : {std::pair(5e-324, 1.0), std::pair(1.0, 1.79e308),
                                  std::pair(5e-324, 1.79e308), std::pair(1e-200, 1e-190)}) {
    const std::string svg = Drawn({"rate", "", {{"", 0, {{1, low}, {2, high}}, false}}});
    EXPECT_THAT(svg, Not(HasSubstr("logarithmic"))) << low << " " << high;
    EXPECT_THAT(svg, Not(HasSubstr("nan"))) << low << " " << high;
  }
  // Such a curve has no ticks, but an end.
  EXPECT_THAT(Drawn({"loss", "", {{"", 0, {{1, 1e20}, {2, 1e20 + 16384}}, false}}}),
              HasSubstr("1e+20"));
}

TEST(ThinnedOut, KeepsEndsAndSpikes) {
  std::vector<CurvePoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({i + 1.0, std::sin(i * 0.001)});
  points[54321].value = 50;
  points[12345].value = -50;
  const std::vector<CurvePoint> kept = ThinnedOut(points, 400);
  EXPECT_LE(kept.size(), 402U);
  EXPECT_EQ(kept.front(), points.front());
  EXPECT_EQ(kept.back(), points.back());
  EXPECT_EQ(std::count(kept.begin(), kept.end(), points[54321]), 1);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), points[12345]), 1);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const auto& a, const auto& b) { return a.step < b.step; }));
}

TEST(ThinnedOut, ShortCurvesStay) {
  const std::vector<CurvePoint> points = {{1, 2}, {2, 3}, {2, 4}};
  EXPECT_EQ(ThinnedOut(points, 400), points);
  EXPECT_TRUE(ThinnedOut({}, 400).empty());
}

}  // namespace
}  // namespace thimble
