#include "thimble/train/task/image_task.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

using Shapes = std::vector<BatchShape>;

TaskPtr TaskFor(const ImageCounts& counts) {
  return ImageTaskOf(TinyConfig(), ImageSpec{}, counts).value();
}

TEST(ImageTask, ShapesOfFullAndLastBatches) {
  const TaskPtr task = TaskFor({.train = 10, .validation = 3, .test = 6});
  EXPECT_EQ(task->TrainShapes(4), (Shapes{{4}, {2}}));
  EXPECT_EQ(task->TrainShapes(5), (Shapes{{5}}));
  EXPECT_EQ(task->EvaluateShapes(DataPart::kTest, 4), (Shapes{{4}, {2}}));
  EXPECT_EQ(task->EvaluateShapes(DataPart::kValidation, 4), (Shapes{{3}}));
  EXPECT_EQ(task->largest_batch(), 10);
}

TEST(ImageTask, InFullBatchesNothingIsKnownOfTheData) {
  const TaskPtr task = TaskFor({.train = 10, .test = 6})->InFullBatches();
  EXPECT_EQ(task->TrainShapes(4), (Shapes{{4}}));
  EXPECT_TRUE(task->EvaluateShapes(DataPart::kTest, 4).empty());
  EXPECT_EQ(task->largest_batch(), 0);
}

TEST(ImageTask, MakesUpLabelsThatExist) {
  const TaskPtr task = TaskFor({});
  std::vector<uint8_t> images(30, 7);
  std::vector<int32_t> labels(30, -1);
  const std::vector<std::span<std::byte>> arrays = {std::as_writable_bytes(std::span(images)),
                                                    std::as_writable_bytes(std::span(labels))};
  task->MakeUp({30}, arrays);
  EXPECT_EQ(*std::ranges::min_element(labels), 0);
  EXPECT_EQ(*std::ranges::max_element(labels), 9);
  EXPECT_NE(images[1], images[2]);
}

TEST(OpenImageTask, TheDataDecideTheAugmentation) {
  TrainConfig config = TinyConfig();
  config.validation = 2;
  const auto opened =
      OpenImageTask(config, [](const ImageSpec& images) { return FindModel("wrn-10-1", images); });
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->task->TrainShapes(4), (Shapes{{4}}));  // 8 images are left
  EXPECT_TRUE(opened->data->Has(DataPart::kValidation));
  EXPECT_EQ(opened->data->Evaluation(DataPart::kTest, 4)->num_batches(), 2);
  EXPECT_EQ(opened->data->Training(4)->steps_per_epoch(), 2);
  EXPECT_TRUE(opened->data->Omissions().empty());
}

}  // namespace
}  // namespace thimble
