#include "thimble/train/planning/plan_sizer.h"

#include <gtest/gtest.h>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/program/techniques.h"

namespace thimble {
namespace {

TEST(PlanSizer, KnowsTheArenaOfTheProgram) {
  TrainConfig config = TinyConfig();
  const ImageClassifier model = FindModel(config.model, ImageSpec{}).value();
  const ImageCounts counts{10, 0, 6};
  for (const int64_t microbatch : {0, 3}) {
    config.microbatch = microbatch;
    const auto program = MakeTrainingProgram(config, model, counts, BuiltinOps());
    const auto size = PlanSizer(TaskOf(model, counts), BuiltinOps()).Of(config);
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(size->arena_bytes, static_cast<int64_t>(program->program.arena_bytes));
    EXPECT_EQ(size->step_flops, StepCost(program->program, BuiltinOps()).step_flops);
    EXPECT_EQ(size->nodes, program->main_plan().graph.nodes.size());
  }
}

TEST(PlanSizer, FitsIfTheArenaHasAtMostSoManyBytes) {
  TrainConfig config = TinyConfig();
  const ImageClassifier model = FindModel(config.model, ImageSpec{}).value();
  for (const char* recompute : {"none", "optimal"}) {
    config.recompute = recompute;
    const PlanSizer sizer(TaskOf(model, {}), BuiltinOps());
    const int64_t bytes = PlanSizer(TaskOf(model, {}), BuiltinOps()).Of(config)->arena_bytes;
    EXPECT_FALSE(*sizer.Fits(config, bytes - 1)) << recompute;
    EXPECT_TRUE(*sizer.Fits(config, bytes)) << recompute;
    EXPECT_FALSE(*sizer.Fits(config, bytes / 2)) << recompute;
    EXPECT_TRUE(*sizer.Fits(config, 2 * bytes)) << recompute;
    EXPECT_EQ(sizer.Of(config)->arena_bytes, bytes) << recompute;
    EXPECT_FALSE(*sizer.Fits(config, bytes - 1)) << recompute;
  }
}

// In two threads; the first size shows that the network is large.
TEST(PreparedSizes, AreThoseFoundOneByOne) {
  const ImageClassifier model = FindModel("wrn-130-1", ImageSpec{}).value();
  std::vector<TrainConfig> configs(4);
  configs[0].levers["update-in-backward"] = "true";
  configs[1].levers["precision"] = "fp16";
  configs[2].levers["sparsity"] = "0.5";
  configs[2].levers["sparse-layers"] = "nothing*";  // cannot be planned
  configs[3].microbatch = 5;
  const PlanSizer prepared(TaskOf(model, {}), BuiltinOps());
  ASSERT_GT(prepared.Of(configs[0])->nodes, kQuicklySearched);
  prepared.Prepare(configs);
  const PlanSizer one_by_one(TaskOf(model, {}), BuiltinOps());
  for (const TrainConfig& config : configs) {
    const auto a = prepared.Of(config);
    const auto b = one_by_one.Of(config);
    ASSERT_EQ(a.ok(), b.ok());
    if (!a.ok()) continue;
    EXPECT_EQ(a->arena_bytes, b->arena_bytes);
    EXPECT_EQ(a->step_flops, b->step_flops);
  }
}

TEST(PlanSizer, KnowsWhetherThereIsAPlan) {
  TrainConfig config = TinyConfig();
  const ImageClassifier model = FindModel(config.model, ImageSpec{}).value();
  const PlanSizer sizer(TaskOf(model, {}), BuiltinOps());
  EXPECT_TRUE(sizer.CanPlan(config));
  config.recompute = "optimal:1000";  // too small, but what it asks for is possible
  EXPECT_TRUE(sizer.CanPlan(config));
  config = TinyConfig();
  config.levers = {{"sparsity", "0.5"}, {"sparse-layers", "nothing*"}};
  EXPECT_FALSE(sizer.CanPlan(config));
}

TEST(PlanSizer, PartsOfABatchDecideItsStatistics) {
  const ImageClassifier model = FindModel("wrn-10-1", ImageSpec{}).value();
  const PlanSizer sizer(TaskOf(model, {}), BuiltinOps());
  const Lever& lever = *FindLever("microbatch");
  const auto exactness = [&](const PlanSizer& planned, int64_t batch) {
    TrainConfig config;
    config.batch = batch;
    config.microbatch = 10;
    return *planned.ExactnessOf(lever, config);
  };
  // 64 samples in seven nearly equal parts.
  EXPECT_EQ(exactness(sizer, 64), "lossy: batch-norm statistics per 10 samples");
  EXPECT_EQ(exactness(sizer, 11), "lossy: batch-norm statistics per 6 samples");
  const ImageClassifier grouped = FindModel("wrn-10-1:group-norm=4", ImageSpec{}).value();
  EXPECT_EQ(exactness(PlanSizer(TaskOf(grouped, {}), BuiltinOps()), 11), "equal");
}

}  // namespace
}  // namespace thimble
