#include "thimble/report/plots/plot_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace thimble {
namespace {

using testing::HasSubstr;

// The colour that the rules give a class.
std::string ColourOf(const std::string& rules, const std::string& css_class) {
  const std::string start = ".plot ." + css_class + "{fill:";
  const size_t at = rules.find(start);
  return at == std::string::npos ? "" : rules.substr(at + start.size(), 7);
}

TEST(PlotStyle, EveryCategoryHasAColourOfItsOwn) {
  for (const Theme theme : {Theme::kLight, Theme::kDark}) {
    const std::string rules = PlotRules(theme);
    std::set<std::string> colours = {ColourOf(rules, std::string(kGapsClass))};
    for (const Category category : kStackOrder) {
      colours.insert(ColourOf(rules, FillClass(category)));
    }
    EXPECT_EQ(colours.size(), kNumCategories + 1);
    EXPECT_EQ(colours.count(""), 0U);
  }
}

TEST(PlotStyle, StackHasEveryCategoryOnce) {
  EXPECT_EQ(std::set<Category>(kStackOrder.begin(), kStackOrder.end()).size(), kNumCategories);
}

TEST(PlotStyle, ThemesDiffer) { EXPECT_NE(PlotRules(Theme::kLight), PlotRules(Theme::kDark)); }

TEST(PlotStyle, LinesRunOutOfColoursThenGetDashes) {
  const std::string rules = PlotRules(Theme::kLight);
  EXPECT_EQ(LineClass(0), "line line-0");
  EXPECT_THAT(rules, HasSubstr(".plot .line-0{stroke:#4477aa}"));
  EXPECT_THAT(rules, HasSubstr(".plot .line-6{stroke:#4477aa;stroke-dasharray:5 3}"));
  EXPECT_EQ(ColourOf(rules, InkClass(0)), ColourOf(rules, InkClass(kNumLineColours)));
  EXPECT_EQ(LineClass(2 * kNumLineColours), LineClass(0));
}

}  // namespace
}  // namespace thimble
