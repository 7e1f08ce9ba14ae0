#include "thimble/report/plots/plot_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(RoundTicks, AreRoundAndWithin) {
  EXPECT_THAT(RoundTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(RoundTicks(0, 409.6, 5), ElementsAre(0, 100, 200, 300, 400));
  EXPECT_THAT(RoundTicks(-1, 1, 4), ElementsAre(-1, -0.5, 0, 0.5, 1));
  EXPECT_THAT(RoundTicks(3, 251, 4), ElementsAre(50, 100, 150, 200, 250));
}

TEST(RoundTicks, SmallRanges) {
  const std::vector<double> ticks = RoundTicks(2.31, 2.37, 5);
  ASSERT_EQ(ticks.size(), 7U);
  EXPECT_DOUBLE_EQ(ticks.front(), 2.31);
  EXPECT_DOUBLE_EQ(ticks.back(), 2.37);
}

TEST(RoundTicks, NoRangeNoTicks) {
  EXPECT_THAT(RoundTicks(1, 1, 5), IsEmpty());
  EXPECT_THAT(RoundTicks(2, 1, 5), IsEmpty());
  EXPECT_THAT(RoundTicks(0, 1, 0), IsEmpty());
  EXPECT_THAT(RoundTicks(0, std::numeric_limits<double>::infinity(), 5), IsEmpty());
  EXPECT_THAT(RoundTicks(0, std::numeric_limits<double>::quiet_NaN(), 5), IsEmpty());
}

// At this size adding the tick distance gives the same double.
TEST(RoundTicks, NumbersTooLargeForTheirRange) {
  EXPECT_THAT(RoundTicks(1e20, 1e20 + 16384, 5), IsEmpty());
  EXPECT_THAT(RoundTicks(-1e20 - 16384, -1e20, 5), IsEmpty());
  EXPECT_THAT(RoundTicks(1, std::nextafter(1.0, 2.0), 5), IsEmpty());
  EXPECT_THAT(RoundTicks(1e20, 2e20, 2), ElementsAre(1e20, 1.5e20, 2e20));
}

TEST(StepTicks, AreWholeNumbers) {
  EXPECT_THAT(StepTicks(4, 8), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(StepTicks(251, 3), ElementsAre(0, 100, 200));
  EXPECT_THAT(StepTicks(0, 5), IsEmpty());
}

TEST(LogTicks, PowersOfTenAndBetween) {
  EXPECT_THAT(LogTicks(0.9, 60), ElementsAre(1, 2, 5, 10, 20, 50));
  EXPECT_EQ(LogTicks(1e-3, 1e2).size(), 6U);  // many decades: only powers
  EXPECT_LE(LogTicks(1e-300, 1e300).size(), 8U);
}

TEST(TickText, IsShort) {
  EXPECT_EQ(TickText(0), "0");
  EXPECT_EQ(TickText(0.05), "0.05");
  EXPECT_EQ(TickText(2000), "2000");
  EXPECT_EQ(TickText(20000), "20k");
  EXPECT_EQ(TickText(1.5e6), "1.5M");
  EXPECT_EQ(TickText(-3e9), "-3G");
}

TEST(ExactBytes, ForPeopleAndToTheByte) {
  EXPECT_EQ(ExactBytes(17), "17 bytes");
  EXPECT_EQ(ExactBytes(13107200), "13.11 MB (13,107,200 bytes)");
}

TEST(UnitFor, KeepsNumbersShort) {
  EXPECT_EQ(UnitFor(393798272).name, "MB");
  EXPECT_EQ(UnitFor(1999).name, "B");
  EXPECT_EQ(UnitFor(50'000).name, "kB");
  EXPECT_EQ(UnitFor(80'000'000'000).bytes, 1e9);
}

TEST(Frame, PutsTheEndsAtTheEdges) {
  Frame frame{.area = {10, 20, 100, 50}, .x_high = 4, .y_low = 1, .y_high = 3};
  EXPECT_EQ(frame.X(0), 10);
  EXPECT_EQ(frame.X(4), 110);
  EXPECT_EQ(frame.Y(1), 70);
  EXPECT_EQ(frame.Y(3), 20);
  frame.y_low = 1;
  frame.y_high = 100;
  frame.y_log = true;
  EXPECT_DOUBLE_EQ(frame.Y(10), 45);
}

TEST(Legend, GoesOnInTheNextRow) {
  const std::vector<LegendEntry> entries = {{"a", "activations 1.00 MB"}, {"b", "model 2.00 MB"}};
  Svg svg(400, 100, "");
  const double one_row = DrawLegend(svg, {0, 0, 400, 0}, entries);
  EXPECT_EQ(LegendHeight(400, entries), one_row);
  EXPECT_EQ(LegendHeight(100, entries), 2 * one_row);
  EXPECT_EQ(LegendHeight(100, {}), 0);
  EXPECT_THAT(svg.Inline(), HasSubstr(">activations 1.00 MB</text>"));
}

TEST(Phases, AreNamedWhereThereIsRoom) {
  const auto drawn = [](size_t forward, double width) {
    std::vector<StepRecord> steps(forward + 1);
    for (size_t i = 0; i < forward; ++i) steps[i].phase = "forward";
    steps.back().phase = "update";
    Svg svg(width, 100, "");
    const Frame frame{.area = {0, 0, width, 50}, .x_high = static_cast<double>(steps.size())};
    DrawPhases(svg, frame, steps);
    return svg.Inline();
  };
  EXPECT_THAT(drawn(1, 400), HasSubstr(">update</text>"));
  EXPECT_THAT(drawn(99, 400), HasSubstr(">forward</text>"));
  EXPECT_THAT(drawn(99, 400), Not(HasSubstr(">update</text>")));
}

TEST(Phases, ManyAreLeftOut) {
  std::vector<StepRecord> steps(40);
  for (size_t i = 0; i < steps.size(); ++i) steps[i].phase = i % 2 == 0 ? "a" : "b";
  Svg svg(400, 100, "");
  DrawPhases(svg, {.area = {0, 0, 400, 50}, .x_high = 40}, steps);
  EXPECT_THAT(svg.Inline(), Not(HasSubstr("<rect")));
}

TEST(Clipped, EndsWhereTheRoomEnds) {
  EXPECT_EQ(Clipped("short", 100), "short");
  EXPECT_EQ(Clipped("0123456789", 50), "012345…");
  EXPECT_EQ(Clipped("äöüäöüäöüä", 50), "äöüäöü…");
  EXPECT_EQ(Clipped("0123456789", 0), "…");
}

TEST(StepText, NamesOpAndLayer) {
  PlanRecord plan;
  plan.steps = {ToyStep("conv2d", "conv1", "forward"), ToyStep("sum", "", "forward")};
  EXPECT_EQ(StepText(plan, 0), "conv2d, conv1");
  EXPECT_EQ(StepText(plan, 1), "sum");
  EXPECT_EQ(StepText(plan, 2), "");
}

}  // namespace
}  // namespace thimble
