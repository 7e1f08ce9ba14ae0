#include "thimble/report/plots/arena_map.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ArenaMap, EveryHoldingAnswers) {
  const std::string svg = ArenaMap(ToyPlan(), 800).Inline();
  EXPECT_EQ(CountOf(svg, "<rect class=\"held "), 5U);
  EXPECT_THAT(svg, HasSubstr("<title>conv1.y\nactivations of layer conv1\n4.00 kB (4,000 bytes)\n"
                             "steps 0 to 2\noffset 3,000</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>fc.weight\nmodel of layer fc\n(10, 25) f32\n"
                             "1.00 kB (1,000 bytes)\nresident: kept between steps\n"
                             "offset 0</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>dconv1.y\ntransient of layer fc\n3.00 kB (3,000 bytes)\n"
                             "step 2\noffset 7,000</title>"));
}

// Of the area of 748 by 460: the last 3,000 of 10,000 bytes in step 2 of 4.
TEST(ArenaMap, RectanglesAreWhereTheBytesAre) {
  const std::string svg = ArenaMap(ToyPlan(), 800).Inline();
  const size_t at = svg.find("<rect class=\"held fill-transient\"");
  ASSERT_NE(at, std::string::npos);
  const std::string mark = svg.substr(at, svg.find('>', at) - at);
  EXPECT_THAT(mark, HasSubstr("x=\"418\" "));
  EXPECT_THAT(mark, HasSubstr("width=\"187\" height=\"138\""));
}

TEST(ArenaMap, ThinNeighboursAreDrawnAsOne) {
  PlanRecord plan = ToyPlan();
  plan.arena_bytes = 1'000'000;
  plan.holdings.clear();
  for (size_t i = 0; i < 600; ++i) {
    plan.holdings.push_back(
        ToyHolding(fmt::format("w{}", i), "fc", Category::kModel, 64 * i, 16, {0, 4}));
  }
  const std::string svg = ArenaMap(plan, 800).Inline();
  EXPECT_LT(CountOf(svg, "<title>"), 25U);
  EXPECT_THAT(svg, HasSubstr("<title>w0 and 34 more\nmodel\n560 bytes\n"));
}

TEST(ArenaMap, NeighboursThatDifferStayApart) {
  PlanRecord plan = ToyPlan();
  plan.arena_bytes = 1'000'000;
  plan.holdings = {ToyHolding("a", "", Category::kModel, 0, 16, {0, 4}),
                   ToyHolding("b", "", Category::kOptimizer, 64, 16, {0, 4}),
                   ToyHolding("c", "", Category::kOptimizer, 128, 16, {0, 3}),
                   ToyHolding("d", "", Category::kOptimizer, 5000, 16, {0, 3})};
  EXPECT_EQ(CountOf(ArenaMap(plan, 800).Inline(), "<title>"), 4U);
}

TEST(ArenaMap, NamesAreEscaped) {
  PlanRecord plan = ToyPlan();
  plan.holdings[3].name = "</title><script>alert(1)</script>";
  plan.holdings[3].shape = "<b>";
  const std::string svg = ArenaMap(plan, 800).Inline();
  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(svg, HasSubstr("&lt;/title&gt;&lt;script&gt;"));
}

TEST(ArenaMap, OfAPlanWithNothingInIt) {
  EXPECT_THAT(ArenaMap({}, 800).Inline(), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace thimble
