#include "thimble/train/task/find_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TrainConfig With(const std::string& model, const std::string& data) {
  TrainConfig config = TinyConfig();
  config.model = model;
  config.data = data;
  config.data_given = true;
  config.batch = 200;
  return config;
}

TEST(FindTask, DataDecideWhatIsTrained) {
  const auto images = OpenTask(With("wrn-10-1", "shapes:10,6"));
  ASSERT_TRUE(images.ok()) << images.error().message;
  EXPECT_EQ(images->task->unit(), "images");
  const auto text = OpenTask(With("dynamicconv-tiny", "numbers:50,10"));
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(text->task->unit(), "tokens");
}

TEST(FindTask, NetworksThatDoNotSuitTheData) {
  EXPECT_THAT(OpenTask(With("wrn-10-1", "numbers")).error().message,
              HasSubstr("is no network for translation"));
  EXPECT_THAT(OpenTask(With("dynamicconv-tiny", "shapes")).error().message,
              HasSubstr("translates sentences, but the data are images"));
  EXPECT_THAT(OpenTask(With("wrn-10-1", "nombers")).error().message,
              HasSubstr("did you mean numbers?"));
}

TEST(FindTask, APlanNeedsNoData) {
  TrainConfig config;
  config.model = "dynamicconv-iwslt";
  config.batch = 4000;
  const auto task = DescribeTask(config);
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ((*task)->TrainShapes(4000), (std::vector<BatchShape>{{160, 25, 25}}));
  EXPECT_THAT(OpenTask(config).error().message, HasSubstr("expected numbers"));
}

TEST(FindTask, OwnNetworksClassifyImages) {
  const auto task = DescribeTask(
      TinyConfig(), [](const ImageSpec& images) { return FindModel("wrn-16-1", images); });
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ((*task)->model(), "wrn-16-1");
}

}  // namespace
}  // namespace thimble
