#include "thimble/report/plots/memory_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MemoryPlot, HasTheNumbersOfEachStep) {
  const std::string svg = MemoryPlot(ToyPlan(), 800).Inline();
  EXPECT_EQ(CountOf(svg, "<title>"), 4U);
  EXPECT_THAT(svg, HasSubstr("<title>step 0: conv2d, conv1\ntotal 6.50 kB (6,500 bytes)\n"));
  EXPECT_THAT(svg,
              HasSubstr("<title>step 2: linear_grad, fc\ntotal 9.00 kB (9,000 bytes)\n"
                        "transient 3.00 kB (3,000 bytes)\n"
                        "activations 4.00 kB (4,000 bytes)\ngradients 0 bytes\ndata 0 bytes\n"
                        "optimizer 1.00 kB (1,000 bytes)\nmodel 1.00 kB (1,000 bytes)</title>"));
}

TEST(MemoryPlot, MarksPeakArenaAndPhases) {
  const std::string svg = MemoryPlot(ToyPlan(), 800).Inline();
  EXPECT_THAT(svg, HasSubstr(">peak 9.00 kB, step 2</text>"));
  EXPECT_THAT(svg, HasSubstr(">arena 10.00 kB</text>"));
  EXPECT_EQ(CountOf(svg, "class=\"hit peak\""), 1U);
  for (const char* phase : {"forward", "backward", "update"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(">") + phase + "</text>"));
  }
}

TEST(MemoryPlot, DrawsOnlyCategoriesThatAreThere) {
  const std::string svg = MemoryPlot(ToyPlan(), 800).Inline();
  EXPECT_THAT(svg, HasSubstr("<path class=\"fill-activations\""));
  EXPECT_THAT(svg, Not(HasSubstr("<path class=\"fill-gradients\"")));
}

TEST(MemoryPlot, StepShaped) {
  PlanRecord plan = ToyPlan();
  plan.holdings.resize(1);  // the weight alone: a rectangle over all steps
  const std::string svg = MemoryPlot(plan, 800).Inline();
  const size_t start = svg.find("<path class=\"fill-model\" d=\"");
  ASSERT_NE(start, std::string::npos);
  const std::string path = svg.substr(start, svg.find('Z', start) - start);
  EXPECT_EQ(CountOf(path, "H"), 8U);
  EXPECT_EQ(CountOf(path, "L"), 0U);
}

TEST(MemoryPlot, NamesAreEscaped) {
  PlanRecord plan = ToyPlan();
  plan.name = "\"><script>";
  plan.steps[0].layer = "</title><script>";
  plan.steps[0].phase = "<i>";
  EXPECT_THAT(MemoryPlot(plan, 800).Inline(), Not(HasSubstr("<script>")));
  EXPECT_THAT(MemoryPlot(plan, 800).Inline(), Not(HasSubstr("<i>")));
}

TEST(MemoryPlot, ManyStepsStayLightAndKeepThePeak) {
  PlanRecord plan = ToyPlan();
  plan.steps.assign(5000, plan.steps.front());
  plan.holdings = {ToyHolding("a", "", Category::kModel, 0, 100, {0, 5000}),
                   ToyHolding("b", "", Category::kTransient, 128, 900, {3333, 3334})};
  const std::string svg = MemoryPlot(plan, 800).Inline();
  EXPECT_EQ(CountOf(svg, "<title>"), 1000U);
  EXPECT_THAT(svg, HasSubstr("<title>step 3333: conv2d, conv1\ntotal 1.00 kB (1,000 bytes)"));
  EXPECT_EQ(CountOf(svg, "class=\"hit peak\""), 1U);
}

TEST(MemoryPlot, OfAPlanWithNothingInIt) {
  PlanRecord plan;
  EXPECT_THAT(MemoryPlot(plan, 800).Inline(), Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace thimble
