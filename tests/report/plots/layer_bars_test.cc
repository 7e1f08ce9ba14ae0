#include "thimble/report/plots/layer_bars.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"
#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

size_t In(const BarRow& row, Category category) { return row.bytes[static_cast<size_t>(category)]; }

TEST(LayersAtPeak, HaveWhatIsHeldThen) {
  const std::vector<BarRow> rows = LayersAtPeak(ToyPlan());
  ASSERT_EQ(rows.size(), 2U);  // the images are released by then
  EXPECT_EQ(rows[0].name, "conv1");
  EXPECT_EQ(In(rows[0], Category::kActivations), 4000U);
  EXPECT_EQ(rows[1].name, "fc");
  EXPECT_EQ(In(rows[1], Category::kModel), 1000U);
  EXPECT_EQ(In(rows[1], Category::kOptimizer), 1000U);  // of "fc.weight"
  EXPECT_EQ(In(rows[1], Category::kTransient), 3000U);
}

TEST(LayersAtPeak, UnknownLayersAndBatchesComeLast) {
  PlanRecord plan = ToyPlan();
  plan.holdings[2].live.end = 4;
  plan.holdings[4].layer = "aaa.unknown";
  const std::vector<BarRow> rows = LayersAtPeak(plan);
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2].name, "aaa.unknown");
  EXPECT_EQ(rows[3].name, "batches");
}

TEST(LayersAtPeak, ManyLayersAreSummedUp) {
  PlanRecord plan = ToyPlan();
  plan.steps.clear();
  plan.holdings.clear();
  for (size_t i = 0; i < 150; ++i) {
    const std::string layer = fmt::format("l{}", i);
    plan.steps.push_back(ToyStep("conv2d", layer, "forward"));
    plan.holdings.push_back(ToyHolding("y", layer, Category::kActivations, 0, 10 + i, {0, 1}));
  }
  const std::vector<BarRow> rows = LayersAtPeak(plan);
  ASSERT_EQ(rows.size(), 101U);
  EXPECT_EQ(rows[0].name, "l50");
  EXPECT_EQ(rows[99].name, "l149");
  EXPECT_EQ(rows[100].name, "50 others");
  EXPECT_EQ(In(rows[100], Category::kActivations), 50U * 10 + 49 * 50 / 2);
}

TEST(LayersAtPeak, AddUpToThePeakInARealPlan) {
  const ProgramRecord record =
      RecordOf(PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages())}}), BuiltinOps());
  CategoryBytes sum{};
  for (const BarRow& row : LayersAtPeak(record.plans.front())) {
    for (size_t i = 0; i < kNumCategories; ++i) sum[i] += row.bytes[i];
    EXPECT_EQ(row.name.find(".weight"), std::string::npos) << row.name;
  }
  EXPECT_EQ(sum, Account(record.plans.front()).at_peak);
}

}  // namespace
}  // namespace thimble
