#include "thimble/report/savings_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(SavingsPlot, FallsFromWithoutTechniquesToTheArena) {
  const std::string svg = SavingsPlot(ToyPlan(), 400).Inline();
  EXPECT_THAT(svg, HasSubstr(">without techniques</text>"));
  EXPECT_THAT(svg, HasSubstr(">15.00 kB</text>"));
  EXPECT_THAT(svg, HasSubstr(">in-place (same-bits)</text>"));
  EXPECT_THAT(svg, HasSubstr(">−5.00 kB</text>"));
  EXPECT_THAT(svg, HasSubstr(">10.00 kB</text>"));
  // Hangs between 10,000 and 15,000 of 15,000 bytes over 399 units.
  EXPECT_THAT(svg, HasSubstr("<rect class=\"saved\" x=\"266\" y=\"113\" width=\"133\""));
}

TEST(SavingsPlot, WhatCostsMemoryIsShownAsSuch) {
  PlanRecord plan = ToyPlan();
  plan.techniques[1].saved_bytes = -2000;
  plan.techniques[1].added_flops = 1'500'000'000;
  const std::string svg = SavingsPlot(plan, 400).Inline();
  EXPECT_THAT(svg, HasSubstr(">+2.00 kB</text>"));
  EXPECT_THAT(svg, HasSubstr("class=\"cost\""));
  EXPECT_THAT(svg, HasSubstr("+1.50 GFLOP per step</title>"));
}

TEST(SavingsPlot, WithoutTechniques) {
  PlanRecord plan = ToyPlan();
  plan.techniques.clear();
  EXPECT_EQ(CountOf(SavingsPlot(plan, 400).Inline(), "<title>"), 2U);
}

TEST(SavingsPlot, AnyNumbersAndNamesFromAFile) {
  PlanRecord plan = ToyPlan();
  plan.techniques[0].saved_bytes = std::numeric_limits<int64_t>::min();
  plan.techniques[1].saved_bytes = std::numeric_limits<int64_t>::max();
  plan.techniques[1].name = "<script>";
  const std::string svg = SavingsPlot(plan, 400).Inline();
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  plan.techniques.assign(3, plan.techniques[1]);
  EXPECT_THAT(SavingsPlot(plan, 400).Inline(), Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace thimble
