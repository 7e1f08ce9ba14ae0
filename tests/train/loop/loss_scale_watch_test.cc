#include "thimble/train/loop/loss_scale_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class LossScaleWatchTest : public testing::Test {
 protected:
  static TrainConfig Scaled(const std::string& scale) {
    TrainConfig config = TinyConfig();
    config.loss_scale = scale;
    config.loss_scale_floor = 2;
    return config;
  }
};

TEST_F(LossScaleWatchTest, SeesSkippedUpdatesAndChanges) {
  TinyRun run(Scaled("8"));
  LossScaleWatch watch(*run.executor, run.program.update);
  EXPECT_TRUE(watch.active());
  EXPECT_EQ(watch.scale(), 8);
  const auto good = watch.After(1, {.scale = 8, .good_updates = 1});
  ASSERT_TRUE(good.ok());
  EXPECT_FALSE(good->skipped || good->any);
  const auto grown = watch.After(2, {.scale = 16});
  ASSERT_TRUE(grown.ok());
  EXPECT_TRUE(!grown->skipped && grown->any);
  const auto skipped = watch.After(3, {.scale = 8, .skipped = 1});
  ASSERT_TRUE(skipped.ok());
  EXPECT_TRUE(skipped->skipped && skipped->any);
  EXPECT_EQ(watch.skipped(), 1);
}

TEST_F(LossScaleWatchTest, StopsAtTheFloor) {
  TinyRun run(Scaled("2"));
  LossScaleWatch watch(*run.executor, run.program.update);
  const auto stopped = watch.After(5, {.scale = 2, .skipped = 1});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(stopped.error().message, HasSubstr("at step 5 and the loss scale, 2, cannot shrink"));
}

TEST_F(LossScaleWatchTest, StopsAtOnceWithoutAScale) {
  TrainConfig config = TinyConfig();
  config.clip = 1;
  TinyRun run(config);
  LossScaleWatch watch(*run.executor, run.program.update);
  EXPECT_EQ(watch.scale(), 1);
  const auto stopped = watch.After(5, {.scale = 1, .skipped = 1});
  ASSERT_FALSE(stopped.ok());
  EXPECT_THAT(stopped.error().message, HasSubstr("a gradient is not finite at step 5"));
}

TEST_F(LossScaleWatchTest, SeesNothingInRunsThatDoNotCheckGradients) {
  TinyRun run(TinyConfig());
  LossScaleWatch watch(*run.executor, run.program.update);
  EXPECT_FALSE(watch.active());
  EXPECT_TRUE(watch.After(1, {}).ok());
}

}  // namespace
}  // namespace thimble
