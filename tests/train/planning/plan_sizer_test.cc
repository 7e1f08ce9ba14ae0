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
