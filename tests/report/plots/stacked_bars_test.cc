#include "thimble/report/plots/stacked_bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

BarRow Row(const std::string& name, size_t model, size_t activations, size_t gaps = 0) {
  BarRow row{name, {}, gaps};
  row.bytes[static_cast<size_t>(Category::kModel)] = model;
  row.bytes[static_cast<size_t>(Category::kActivations)] = activations;
  return row;
}

TEST(StackedBars, EachRowHasItsParts) {
  const std::string svg =
      StackedBars({Row("a", 1000, 3000), Row("b", 0, 2000, 500)}, 800, "x").Inline();
  EXPECT_THAT(svg, HasSubstr("<title>a\ntotal 4.00 kB (4,000 bytes)\n"
                             "model 1.00 kB (1,000 bytes)\nactivations 3.00 kB (3,000 bytes)"));
  EXPECT_THAT(svg, HasSubstr("<title>b\ntotal 2.50 kB (2,500 bytes)\n"
                             "activations 2.00 kB (2,000 bytes)\ngaps 500 bytes</title>"));
  EXPECT_THAT(svg, HasSubstr(">4.00 kB</text>"));
  EXPECT_EQ(CountOf(svg, "<rect class=\"fill-gaps\""), 1U);
}

TEST(StackedBars, LegendHasWhatOccurs) {
  const std::string svg = StackedBars({Row("a", 1000, 3000)}, 800, "x").Inline();
  EXPECT_THAT(svg, HasSubstr(">activations</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">optimizer</text>")));
}

TEST(StackedBars, LongNamesKeepTheirEnd) {
  const std::string name = std::string(200, 'x') + ".größe";
  const std::string svg = StackedBars({Row(name, 1, 1)}, 344, "x").Inline();
  EXPECT_THAT(svg, Not(HasSubstr(">" + name + "</text>")));
  EXPECT_THAT(svg, HasSubstr(">…x"));
  EXPECT_THAT(svg, HasSubstr(".größe</text>"));
}

TEST(StackedBars, NamesAreEscapedAndNothingIsFine) {
  EXPECT_THAT(StackedBars({Row("<script>", 1, 1)}, 344, "<i>").Inline(),
              Not(testing::AnyOf(HasSubstr("<script>"), HasSubstr("<i>"))));
  EXPECT_THAT(StackedBars({}, 344, "x").Inline(), Not(HasSubstr("nan")));
  EXPECT_THAT(StackedBars({Row("empty", 0, 0)}, 344, "x").Inline(), HasSubstr(">0 B</text>"));
}

}  // namespace
}  // namespace thimble
