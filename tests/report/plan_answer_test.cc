#include "thimble/report/plan_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/model_graphs.h"
#include "thimble/base/json.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

class PlanAnswerTest : public testing::Test {
 protected:
  Json Summary(int64_t budget_bytes = 0) {
    answer_.budget_bytes = budget_bytes;
    return ParseJson(ToJson(answer_)).value();
  }

  PlanAnswer answer_{
      .model = "wrn-10-1",
      .batch = 3,
      .budget_bytes = 0,
      .plain_arena_bytes = 12345,
      .record = RecordOf(PlanGraphs({{"train 3", TrainingGraph("wrn-10-1", 3, TinyImages()), 1}}),
                         BuiltinOps())};
};

TEST_F(PlanAnswerTest, HasAllPromisedKeys) {
  const Json json = Summary();
  const PlanRecord& plan = answer_.plan();
  EXPECT_EQ(json["model"], "wrn-10-1");
  EXPECT_EQ(json["batch"], 3);
  EXPECT_EQ(json["parameters"], plan.parameters);
  EXPECT_EQ(json["arena_bytes"], answer_.record.arena_bytes);
  EXPECT_EQ(json["kept_bytes"], Account(plan).kept_bytes);
  EXPECT_EQ(json["plain_arena_bytes"], 12345);
  EXPECT_EQ(json["lower_bound_bytes"], plan.lower_bound_bytes);
  EXPECT_EQ(json["flops"]["forward"], plan.forward_flops);
  EXPECT_EQ(json["flops"]["step"], plan.step_flops);
  EXPECT_EQ(json["flops"]["recompute"], 0);
}

TEST_F(PlanAnswerTest, CategoriesSumUpToTheArena) {
  const Json categories = Summary()["categories"];
  EXPECT_EQ(categories.size(), kNumCategories + 1);
  size_t sum = 0;
  for (const auto& [name, bytes] : categories.members()) sum += bytes.get<size_t>();
  EXPECT_EQ(sum, answer_.record.arena_bytes);
  EXPECT_TRUE(categories.contains("gaps"));
}

TEST_F(PlanAnswerTest, SaysWhereThePeakIs) {
  const MemoryAccount account = Account(answer_.plan());
  const Json peak = Summary()["peak"];
  EXPECT_EQ(peak["step"], account.peak_step);
  EXPECT_EQ(peak["op"], answer_.plan().steps[account.peak_step].op);
  ASSERT_FALSE(peak["largest"].empty());
  for (size_t i = 1; i < peak["largest"].size(); ++i) {
    EXPECT_GE(peak["largest"][i - 1]["bytes"], peak["largest"][i]["bytes"]);
  }
  EXPECT_NE(peak["largest"][0]["layer"], "");
}

TEST_F(PlanAnswerTest, LargestCategoriesAreNoSmallerThanThoseAtThePeak) {
  const Json json = Summary();
  for (const auto& [name, bytes] : json["largest_categories"].members()) {
    EXPECT_GE(bytes, json["categories"][name]) << name;
  }
}

TEST_F(PlanAnswerTest, RatiosAreToWhatIsKnown) {
  EXPECT_DOUBLE_EQ(Summary()["ratios"]["to_plain"].number(),
                   12345 / static_cast<double>(answer_.arena_bytes()));
  EXPECT_FALSE(Summary()["ratios"].contains("to_pytorch"));
}

TEST_F(PlanAnswerTest, LayersAreThereOnDemand) {
  EXPECT_FALSE(Summary().contains("layers"));
  answer_.with_layers = true;
  const Json layers = Summary()["layers"];
  int64_t flops = 0;
  for (const Json& layer : layers) flops += layer["flops"]["step"].get<int64_t>();
  EXPECT_EQ(flops, answer_.plan().step_flops);
}

TEST_F(PlanAnswerTest, CsvHasALineForEachCategory) {
  const std::string csv = ToCsv(answer_);
  EXPECT_EQ(csv.find("category,peak_bytes,largest_bytes\nmodel,"), 0U);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + static_cast<int>(kNumCategories) + 2);
}

TEST_F(PlanAnswerTest, CsvOfLayersQuotesNames) {
  answer_.with_layers = true;
  for (StepRecord& step : answer_.record.plans[0].steps) {
    if (step.layer == "fc") step.layer = "f,\"c\"";
  }
  const std::string csv = ToCsv(answer_);
  EXPECT_EQ(csv.find("layer,model_bytes,gradients_bytes,optimizer_bytes,activations_bytes,"
                     "transient_bytes,data_bytes,forward_flops,step_flops\n"),
            0U);
  EXPECT_NE(csv.find("\n\"f,\"\"c\"\"\",0,0,"), std::string::npos);
}

TEST_F(PlanAnswerTest, FitsIsAboutTheBudget) {
  const auto arena = static_cast<int64_t>(answer_.record.arena_bytes);
  EXPECT_TRUE(Summary()["fits"].boolean());
  EXPECT_FALSE(Summary().contains("budget_bytes"));
  EXPECT_TRUE(Summary(arena)["fits"].boolean());
  EXPECT_FALSE(Summary(arena - 1)["fits"].boolean());
  EXPECT_EQ(Summary(arena - 1)["budget_bytes"], arena - 1);
  EXPECT_EQ(Summary(arena - 1)["missing_bytes"], 1);
  EXPECT_FALSE(Summary(arena).contains("missing_bytes"));
}

}  // namespace
}  // namespace thimble
