#include "thimble/train/planning/frontier.h"

#include <gtest/gtest.h>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/planning/budget_search.h"

namespace thimble {
namespace {

TEST(Frontier, LessMemoryCostsTimeOrExactness) {
  TrainConfig config = TinyConfig();
  config.batch = 8;
  config.threads = 1;
  config.allow = "recompute,fp16";
  const ImageClassifier model = FindModel("wrn-10-1", ImageSpec{}).value();
  const PlanSizer sizer(TaskOf(model, {}), BuiltinOps());
  const auto points = FindFrontier(config, sizer);
  ASSERT_TRUE(points.ok()) << points.error().message;
  ASSERT_GE(points->size(), 4U);
  EXPECT_EQ(points->front().arena_bytes, sizer.Of(config)->arena_bytes);
  EXPECT_EQ(points->front().options, "");
  EXPECT_EQ(points->front().exactness, "same-bits");
  EXPECT_EQ(points->back().exactness, "lossy");
  for (size_t i = 1; i < points->size(); ++i) {
    const FrontierPoint& larger = (*points)[i - 1];
    const FrontierPoint& point = (*points)[i];
    EXPECT_LT(point.arena_bytes, larger.arena_bytes);
    EXPECT_TRUE(point.step_flops > larger.step_flops || point.exactness != larger.exactness ||
                point.lost_points > larger.lost_points)
        << point.options;
  }
  // The floor: a budget one byte smaller is refused.
  config.budget_bytes = points->back().arena_bytes - 1;
  EXPECT_FALSE(ChooseForBudget(config, sizer).ok());
}

}  // namespace
}  // namespace thimble
