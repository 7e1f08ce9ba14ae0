#include "thimble/data/batch_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/data/batch_memory.h"
#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

void Append(const ImageBatch& part, ImageBatch& batch) {
  batch.images.insert(batch.images.end(), part.images.begin(), part.images.end());
  batch.labels.insert(batch.labels.end(), part.labels.begin(), part.labels.end());
}

auto AtMost(int64_t largest) {
  return [=](const BatchShape& shape) { return CutNearlyEqually(shape.samples, largest); };
}

TEST(BatchParts, AreNearlyEqualAndNumberedThrough) {
  const NumberedDataset dataset(17);
  const TrainBatches batches(dataset, 7, 1);  // 7, 7, 3
  const BatchParts parts(batches, AtMost(3));
  EXPECT_EQ(parts.PartAt(0), (BatchPart{0, {0, {7}}, {0, 3}}));
  EXPECT_EQ(parts.PartAt(1), (BatchPart{0, {0, {7}}, {3, 2}}));
  EXPECT_EQ(parts.PartAt(2), (BatchPart{0, {0, {7}}, {5, 2}}));
  EXPECT_EQ(parts.PartAt(3), (BatchPart{1, {0, {7}}, {0, 3}}));
  EXPECT_EQ(parts.PartAt(6), (BatchPart{2, {0, {3}}, {0, 3}}));
  EXPECT_EQ(parts.PartAt(9), (BatchPart{3, {1, {7}}, {0, 3}}));
  EXPECT_EQ(parts.After(1), 2);
  EXPECT_EQ(parts.After(2), 3);
  EXPECT_EQ(parts.After(6), 9);  // the last batch of an epoch has one part
  EXPECT_FALSE(parts.PartAt(1).last());
  EXPECT_TRUE(parts.PartAt(2).last());
  EXPECT_TRUE(parts.PartAt(6).last());
}

TEST(BatchParts, TheLastBatchMayHaveMoreParts) {
  const NumberedDataset dataset(10);
  const TrainBatches batches(dataset, 4, 1);  // 4, 4, 2
  const BatchParts parts(batches, [](const BatchShape& shape) {
    return NearlyEqualParts{shape.samples, shape.samples == 4 ? 1 : 2};
  });
  EXPECT_EQ(parts.PartAt(2), (BatchPart{1, {0, {4}}, {0, 4}}));
  EXPECT_EQ(parts.After(2), 4);
  EXPECT_EQ(parts.PartAt(4), (BatchPart{2, {0, {2}}, {0, 1}}));
  EXPECT_EQ(parts.PartAt(5), (BatchPart{2, {0, {2}}, {1, 1}}));
  EXPECT_EQ(parts.PartAt(6), (BatchPart{3, {1, {4}}, {0, 4}}));
  EXPECT_EQ(parts.FirstPart(3), 6);
}

// For all sizes: the parts of a step contain its images in its order.
TEST(BatchParts, TogetherAreTheBatch) {
  const NumberedDataset dataset(23);
  for (int64_t batch = 1; batch <= 24; ++batch) {
    const TrainBatches batches(dataset, batch, 5);
    for (const int64_t largest : {int64_t{1}, int64_t{3}, batch, batch + 1}) {
      const BatchParts parts(batches, AtMost(largest));
      for (int64_t step = 0; step < 2 * batches.steps_per_epoch() + 1; ++step) {
        const ImageBatch whole = Filled(WholeBatches(batches), step);
        ImageBatch joined;
        std::vector<int32_t> samples;
        int64_t seen = 0;
        int64_t part_number = parts.FirstPart(step);
        for (int64_t i = 0; i < parts.NumParts(step); ++i, part_number = parts.After(part_number)) {
          const BatchPart part = parts.PartAt(part_number);
          EXPECT_EQ(part.step, step);
          EXPECT_EQ(part.samples.first, seen);
          EXPECT_LE(part.samples.count, largest);
          seen += part.samples.count;
          Append(Filled(parts, part_number), joined);
          std::vector<int32_t> of_part(static_cast<size_t>(part.samples.count));
          parts.Samples(part_number, of_part);
          samples.insert(samples.end(), of_part.begin(), of_part.end());
        }
        EXPECT_EQ(part_number, parts.FirstPart(step + 1));
        EXPECT_EQ(joined, whole) << batch << " in parts of " << largest << ", step " << step;
        EXPECT_EQ(samples, whole.labels);  // image i has the label i
      }
    }
  }
}

TEST(BatchParts, AnErrorOfTheDataComesOut) {
  const NumberedDataset dataset(6, /*broken_index=*/4);
  const TrainBatches batches(dataset, 6, 1);
  const BatchParts parts(batches, AtMost(1));
  int broken = 0;
  ImageBatch image(1, batches.image_bytes());
  for (int64_t part = 0; part < 6; ++part) broken += parts.Fill(part, image.arrays()).ok() ? 0 : 1;
  EXPECT_EQ(broken, 1);
}

TEST(BatchPartsDeathTest, RefusesImpossibleNumbers) {
  const NumberedDataset dataset(6);
  const TrainBatches batches(dataset, 6, 1);
  EXPECT_DEATH(BatchParts(batches,
                          [](const BatchShape& shape) {
                            return NearlyEqualParts{shape.samples, 0};
                          }),
               "samples in 0 parts");
  const BatchParts parts(batches, AtMost(4));
  EXPECT_DEATH(parts.PartAt(-1), "part -1");
  std::vector<int32_t> samples(2);
  EXPECT_DEATH(parts.Samples(0, samples), "space for 2 indices, expected 3");
}

}  // namespace
}  // namespace thimble
