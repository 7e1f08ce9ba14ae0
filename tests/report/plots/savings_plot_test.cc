#include "thimble/report/plots/savings_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

Savings MadeSavings() {
  Savings savings;
  savings.bare_arena_bytes = 15'000;
  savings.always = {{"placement", "same-bits", "share bytes", 10'000, 100, 12'000}};
  savings.asked_arena_bytes = 9'000;
  savings.offered = {{"--less", "lossy", "do less", 6'000, 100, 9'000}};
  savings.together_arena_bytes = 6'000;
  return savings;
}

TEST(SavingsPlot, HasARowForEachPlan) {
  const std::string svg = SavingsPlot(MadeSavings(), 9'000, 400).Inline();
  for (const char* name :
       {"none of these", "placement alone", "plain plan: all these", "with --less", "this run"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(">") + name + "</text>"));
  }
  EXPECT_THAT(svg, HasSubstr(">saves 5.00 kB, leaving it out costs 3.00 kB · same-bits</text>"));
  EXPECT_THAT(svg, HasSubstr(">saves 3.00 kB, leaving it out costs 3.00 kB · lossy</text>"));
  EXPECT_EQ(CountOf(svg, "<title>"), 5U);
}

TEST(SavingsPlot, WhatIsSavedHangsBehindWhatIsNeeded) {
  const std::string svg = SavingsPlot(MadeSavings(), 9'000, 400).Inline();
  // 10,000 of 15,000 bytes over 399 units.
  EXPECT_THAT(svg, HasSubstr("<rect class=\"total\" x=\"0\" y=\"65\" width=\"266\""));
  EXPECT_THAT(svg, HasSubstr("<rect class=\"saved\" x=\"266\" y=\"65\" width=\"133\""));
}

TEST(SavingsPlot, WhatCostsMemoryIsShownAsSuch) {
  EXPECT_THAT(SavingsPlot(MadeSavings(), 9'000, 400).Inline(), Not(HasSubstr("class=\"cost\"")));
  EXPECT_THAT(SavingsPlot(MadeSavings(), 16'000, 400).Inline(), HasSubstr("class=\"cost\""));
}

}  // namespace
}  // namespace thimble
