#include "thimble/data/batch_parts.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

struct Batch {
  std::vector<uint8_t> images;
  std::vector<int32_t> labels;
  friend bool operator==(const Batch&, const Batch&) = default;
};

void Append(const BatchSource& source, int64_t number, Batch& batch) {
  const auto count = static_cast<size_t>(source.CountAt(number));
  std::vector<uint8_t> images(count * source.image_bytes());
  std::vector<int32_t> labels(count);
  ASSERT_TRUE(source.Fill(number, images, labels).ok());
  batch.images.insert(batch.images.end(), images.begin(), images.end());
  batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
}

auto AtMost(int64_t largest) {
  return [=](int64_t samples) { return CutNearlyEqually(samples, largest); };
}

TEST(BatchParts, AreNearlyEqualAndNumberedThrough) {
  const NumberedDataset dataset(17);
  const TrainBatches batches(dataset, 7, 1);  // 7, 7, 3
  const BatchParts parts(batches, AtMost(3));
  EXPECT_EQ(parts.PartAt(0), (BatchPart{0, {0, 0, 3}, 7, 0}));
  EXPECT_EQ(parts.PartAt(1), (BatchPart{0, {0, 3, 2}, 7, 3}));
  EXPECT_EQ(parts.PartAt(2), (BatchPart{0, {0, 5, 2}, 7, 5}));
  EXPECT_EQ(parts.PartAt(3), (BatchPart{1, {0, 7, 3}, 7, 0}));
  EXPECT_EQ(parts.PartAt(6), (BatchPart{2, {0, 14, 3}, 3, 0}));
  EXPECT_EQ(parts.PartAt(7), (BatchPart{3, {1, 0, 3}, 7, 0}));
  EXPECT_FALSE(parts.PartAt(1).last());
  EXPECT_TRUE(parts.PartAt(2).last());
  EXPECT_TRUE(parts.PartAt(6).last());
}

TEST(BatchParts, TheLastBatchMayHaveMoreParts) {
  const NumberedDataset dataset(10);
  const TrainBatches batches(dataset, 4, 1);  // 4, 4, 2
  const BatchParts parts(batches, [](int64_t samples) {
    return NearlyEqualParts{samples, samples == 4 ? 1 : 2};
  });
  EXPECT_EQ(parts.PartAt(1), (BatchPart{1, {0, 4, 4}, 4, 0}));
  EXPECT_EQ(parts.PartAt(2), (BatchPart{2, {0, 8, 1}, 2, 0}));
  EXPECT_EQ(parts.PartAt(3), (BatchPart{2, {0, 9, 1}, 2, 1}));
  EXPECT_EQ(parts.PartAt(4), (BatchPart{3, {1, 0, 4}, 4, 0}));
  EXPECT_EQ(parts.FirstPart(3), 4);
}

// For all sizes: the parts of a step contain its images in its order.
TEST(BatchParts, TogetherAreTheBatch) {
  const NumberedDataset dataset(23);
  for (int64_t batch = 1; batch <= 24; ++batch) {
    const TrainBatches batches(dataset, batch, 5);
    for (const int64_t largest : {int64_t{1}, int64_t{3}, batch, batch + 1}) {
      const BatchParts parts(batches, AtMost(largest));
      for (int64_t step = 0; step < 2 * batches.steps_per_epoch() + 1; ++step) {
        Batch whole;
        Append(batches, step, whole);
        Batch joined;
        std::vector<int32_t> samples;
        int64_t seen = 0;
        for (int64_t i = parts.FirstPart(step); i < parts.FirstPart(step + 1); ++i) {
          const BatchPart part = parts.PartAt(i);
          EXPECT_EQ(part.step, step);
          EXPECT_EQ(part.seen, seen);
          EXPECT_LE(part.range.count, largest);
          seen += part.range.count;
          Append(parts, i, joined);
          std::vector<int32_t> of_part(static_cast<size_t>(part.range.count));
          parts.Samples(i, of_part);
          samples.insert(samples.end(), of_part.begin(), of_part.end());
        }
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
  std::vector<uint8_t> image(static_cast<size_t>(parts.image_bytes()));
  std::vector<int32_t> label(1);
  for (int64_t part = 0; part < 6; ++part) broken += parts.Fill(part, image, label).ok() ? 0 : 1;
  EXPECT_EQ(broken, 1);
}

TEST(BatchPartsDeathTest, RefusesImpossibleNumbers) {
  const NumberedDataset dataset(6);
  const TrainBatches batches(dataset, 6, 1);
  EXPECT_DEATH(BatchParts(batches,
                          [](int64_t samples) {
                            return NearlyEqualParts{samples, 0};
                          }),
               "samples in 0 parts");
  const BatchParts parts(batches, AtMost(4));
  EXPECT_DEATH(parts.PartAt(-1), "part -1");
  std::vector<int32_t> samples(2);
  EXPECT_DEATH(parts.Samples(0, samples), "space for 2 indices, expected 3");
}

}  // namespace
}  // namespace thimble
