#include "thimble/data/batches.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "thimble/data/shapes_dataset.h"

namespace thimble {
namespace {

struct FilledBatch {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
};

template <class Source>
FilledBatch FillStep(const Source& source, int64_t step) {
  const auto count = static_cast<size_t>(source.CountAt(step));
  FilledBatch batch{std::vector<uint8_t>(count * source.image_bytes()),
                    std::vector<int32_t>(count)};
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
  const TrainBatches batches(dataset, 10, 1);
  EXPECT_EQ(batches.steps_per_epoch(), 3);
  EXPECT_EQ(batches.BatchAt(0), (BatchRange{0, 0, 10}));
  EXPECT_EQ(batches.BatchAt(2), (BatchRange{0, 20, 5}));
  EXPECT_EQ(batches.BatchAt(3), (BatchRange{1, 0, 10}));
  EXPECT_EQ(batches.CountAt(300), 10);
  EXPECT_EQ(batches.CountAt(302), 5);
}

TEST(TrainBatchesTest, BatchLargerThanTheDataSetIsTheDataSet) {
  const NumberedDataset dataset(3);
  const TrainBatches batches(dataset, 10, 1);
  EXPECT_EQ(batches.BatchAt(7), (BatchRange{7, 0, 3}));
}

TEST(TrainBatchesTest, EachEpochShowsEveryImageOnceInItsOwnOrder) {
  const NumberedDataset dataset(25);
  const TrainBatches batches(dataset, 10, 1);
  std::vector<std::vector<int32_t>> orders(2);
  for (int64_t step = 0; step < 6; ++step) {
    const FilledBatch batch = FillStep(batches, step);
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
  const TrainBatches batches(dataset, 8, 1);
  const FilledBatch late = FillStep(batches, 1000);
  FillStep(batches, 3);
  const TrainBatches again(dataset, 8, 1);
  EXPECT_EQ(FillStep(again, 1000).images, late.images);
  const TrainBatches other_seed(dataset, 8, 2);
  EXPECT_NE(FillStep(other_seed, 1000).images, late.images);
}

TEST(TrainBatchesTest, SamplesAreWhereTheImagesComeFrom) {
  const NumberedDataset dataset(25);
  const TrainBatches batches(dataset, 10, 1);
  for (int64_t step = 0; step < 6; ++step) {
    std::vector<int32_t> samples(static_cast<size_t>(batches.CountAt(step)));
    batches.Samples(step, samples);
    EXPECT_EQ(FillStep(batches, step).labels, samples) << step;  // label i belongs to image i
  }
}

TEST(TrainBatchesTest, WritesNoMoreThanTheBatch) {
  const NumberedDataset dataset(3);
  const TrainBatches batches(dataset, 2, 1);
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
  ASSERT_EQ(batches.num_batches(), 3);
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
  const auto result = TrainBatches(dataset, 10, 1).Fill(0, images, labels);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "broken image");
  EXPECT_FALSE(EvalBatches(dataset, 10).Fill(0, images, labels).ok());
}

TEST(BatchesDeathTest, WrongUse) {
  const NumberedDataset dataset(10);
  const EvalBatches batches(dataset, 4);
  std::vector<uint8_t> images(10);
  std::vector<int32_t> labels(10);
  EXPECT_DEATH((void)batches.Fill(0, images, labels).ok(), "10 bytes for 4 images");
  EXPECT_DEATH((void)batches.CountAt(3), "batch 3 of 3");
  EXPECT_DEATH(TrainBatches(dataset, 0, 1), "batches of 0");
  EXPECT_DEATH(TrainBatches(dataset, 4, 1).Samples(2, labels), "space for 10 indices, expected 2");
}

}  // namespace
}  // namespace thimble
