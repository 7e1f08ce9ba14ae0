#include "thimble/data/batches.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "thimble/data/shapes_dataset.h"

namespace thimble {
namespace {

struct Batch {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
};

Batch FillStep(const BatchSource& source, int64_t step) {
  const auto count = static_cast<size_t>(source.CountAt(step));
  Batch batch{std::vector<uint8_t>(count * source.image_bytes()), std::vector<int32_t>(count)};
  EXPECT_TRUE(source.Fill(step, batch.images, batch.labels).ok());
  return batch;
}

TEST(BatchesTest, StepsPerEpochRoundsUp) {
  EXPECT_EQ(StepsPerEpoch(100, 10), 10);
  EXPECT_EQ(StepsPerEpoch(101, 10), 11);
  EXPECT_EQ(StepsPerEpoch(1, 10), 1);
  EXPECT_EQ(StepsPerEpoch(INT64_MAX, INT64_MAX), 1);
}

TEST(TrainBatchesTest, LastBatchOfAnEpochIsSmaller) {
  const NumberedDataset dataset(25);
  const TrainBatches batches(dataset, 10, 1, Augmentation::kNone);
  EXPECT_EQ(batches.steps_per_epoch(), 3);
  EXPECT_EQ(batches.BatchAt(0), (BatchRange{0, 0, 10}));
  EXPECT_EQ(batches.BatchAt(2), (BatchRange{0, 20, 5}));
  EXPECT_EQ(batches.BatchAt(3), (BatchRange{1, 0, 10}));
  EXPECT_EQ(batches.CountAt(300), 10);
  EXPECT_EQ(batches.CountAt(302), 5);
}

TEST(TrainBatchesTest, BatchLargerThanTheDataSetIsTheDataSet) {
  const NumberedDataset dataset(3);
  const TrainBatches batches(dataset, 10, 1, Augmentation::kNone);
  EXPECT_EQ(batches.BatchAt(7), (BatchRange{7, 0, 3}));
}

TEST(TrainBatchesTest, EachEpochShowsEveryImageOnceInItsOwnOrder) {
  const NumberedDataset dataset(25);
  const TrainBatches batches(dataset, 10, 1, Augmentation::kNone);
  std::vector<std::vector<int32_t>> orders(2);
  for (int64_t step = 0; step < 6; ++step) {
    const Batch batch = FillStep(batches, step);
    for (size_t i = 0; i < batch.labels.size(); ++i) {
      EXPECT_EQ(batch.images[i * dataset.format().image_bytes()], batch.labels[i] % 251);
      orders[step / 3].push_back(batch.labels[i]);
    }
  }
  EXPECT_NE(orders[0], orders[1]);
  for (const auto& order : orders) {
    EXPECT_EQ(std::set<int32_t>(order.begin(), order.end()).size(), 25U);
  }
}

TEST(TrainBatchesTest, AnyStepIsRepeatableOnItsOwn) {
  const ShapesDataset dataset(4, ShapesSplit::kTrain, 57);
  const TrainBatches batches(dataset, 8, 1, Augmentation::kCropFlip);
  const Batch late = FillStep(batches, 1000);
  FillStep(batches, 3);
  const TrainBatches again(dataset, 8, 1, Augmentation::kCropFlip);
  EXPECT_EQ(FillStep(again, 1000).images, late.images);
  const TrainBatches other_seed(dataset, 8, 2, Augmentation::kCropFlip);
  EXPECT_NE(FillStep(other_seed, 1000).images, late.images);
}

// The draw belongs to the image, not to its row in the batch: batches of 1 and of 6 show the same.
TEST(TrainBatchesTest, AugmentationDoesNotDependOnTheBatchSize) {
  const ShapesDataset dataset(4, ShapesSplit::kTrain, 6);
  const TrainBatches whole(dataset, 6, 1, Augmentation::kCropFlip);
  const TrainBatches single(dataset, 1, 1, Augmentation::kCropFlip);
  const Batch all = FillStep(whole, 1);
  for (int64_t i = 0; i < 6; ++i) {
    const Batch one = FillStep(single, 6 + i);
    const auto* expected = all.images.data() + i * whole.image_bytes();
    EXPECT_TRUE(std::equal(one.images.begin(), one.images.end(), expected)) << i;
    EXPECT_EQ(one.labels[0], all.labels[i]);
  }
}

TEST(TrainBatchesTest, AugmentationChangesImagesButNotTheOrder) {
  const ShapesDataset dataset(4, ShapesSplit::kTrain, 40);
  const TrainBatches plain(dataset, 20, 1, Augmentation::kNone);
  const TrainBatches augmented(dataset, 20, 1, Augmentation::kCropFlip);
  EXPECT_EQ(FillStep(plain, 0).labels, FillStep(augmented, 0).labels);
  EXPECT_NE(FillStep(plain, 0).images, FillStep(augmented, 0).images);
}

TEST(TrainBatchesTest, WritesNoMoreThanTheBatch) {
  const NumberedDataset dataset(3);
  const TrainBatches batches(dataset, 2, 1, Augmentation::kCropFlip);
  std::vector<uint8_t> images(2 * static_cast<size_t>(batches.image_bytes()), 255);
  std::vector<int32_t> labels(2, -7);
  ASSERT_TRUE(batches.Fill(1, images, labels).ok());
  EXPECT_EQ(labels[1], -7);
  EXPECT_EQ(images[batches.image_bytes()], 255);
  EXPECT_NE(images[batches.image_bytes() - 1], 255);
}

TEST(EvalBatchesTest, EveryImageInOrder) {
  const NumberedDataset dataset(25);
  const EvalBatches batches(dataset, 10);
  ASSERT_EQ(batches.num_steps(), 3);
  int32_t next = 0;
  for (int64_t step = 0; step < 3; ++step) {
    for (const int32_t label : FillStep(batches, step).labels) EXPECT_EQ(label, next++);
  }
  EXPECT_EQ(next, 25);
}

TEST(BatchesTest, ErrorsOfTheDataSetComeThrough) {
  const NumberedDataset dataset(10, /*broken_index=*/4);
  std::vector<uint8_t> images(10 * static_cast<size_t>(dataset.format().image_bytes()));
  std::vector<int32_t> labels(10);
  for (const Augmentation augmentation : {Augmentation::kNone, Augmentation::kCropFlip}) {
    const auto result = TrainBatches(dataset, 10, 1, augmentation).Fill(0, images, labels);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().message, "broken image");
  }
  EXPECT_FALSE(EvalBatches(dataset, 10).Fill(0, images, labels).ok());
}

TEST(BatchesDeathTest, WrongUse) {
  const NumberedDataset dataset(10);
  const EvalBatches batches(dataset, 4);
  std::vector<uint8_t> images(10);
  std::vector<int32_t> labels(10);
  EXPECT_DEATH((void)batches.Fill(0, images, labels).ok(), "10 bytes for 4 images");
  EXPECT_DEATH((void)batches.CountAt(3), "step 3 of 3");
  EXPECT_DEATH(TrainBatches(dataset, 0, 1, Augmentation::kNone), "batches of 0");
}

}  // namespace
}  // namespace thimble
