#include "thimble/train/loop/batch_feed.h"

#include <gtest/gtest.h>

#include "tests/data/batch_memory.h"
#include "tests/data/fake_dataset.h"
#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

std::vector<TensorView> Views(ImageBatch& batch) {
  return {{batch.images.data(), DType::kU8, {static_cast<int64_t>(batch.images.size())}},
          {batch.labels.data(), DType::kI32, {static_cast<int64_t>(batch.labels.size())}}};
}

constexpr BatchShape kFour = {4};

// What the feed gives for steps [first, end).
std::vector<ImageBatch> Feed(const BatchSource& source, int64_t slots, int64_t first, int64_t end) {
  TrainConfig config = TinyConfig();
  config.prefetch = slots;
  const TinyRun run(config);
  BatchFeed feed(source, *run.executor, slots, {&kFour, 1});
  EXPECT_TRUE(feed.Start(first, end).ok());
  std::vector<ImageBatch> batches;
  for (int64_t step = first; step < end; ++step) {
    batches.push_back(RoomFor(source, step));
    EXPECT_TRUE(feed.Next(step, Views(batches.back())).ok()) << step;
  }
  return batches;
}

TEST(BatchFeed, TheRingChangesNothing) {
  const TrainConfig config = TinyConfig();
  const ImageData data = TinyData(config);
  const TrainBatches batches(*data.train, config.batch, config.seed);
  const BatchParts source = WholeBatches(batches);
  const std::vector<ImageBatch> expected = Feed(source, 0, 0, 7);
  EXPECT_EQ(expected[2].labels.size(), 2U);  // the last batch of the first epoch
  EXPECT_EQ(Feed(source, 1, 0, 7), expected);
  EXPECT_EQ(Feed(source, 3, 0, 7), expected);
  // From the middle, as after a resume.
  EXPECT_EQ(Feed(source, 2, 4, 7), std::vector<ImageBatch>(expected.begin() + 4, expected.end()));
}

TEST(BatchFeed, NothingToDo) {
  const TrainConfig config = TinyConfig();
  const ImageData data = TinyData(config);
  const TrainBatches batches(*data.train, config.batch, config.seed);
  const BatchParts source = WholeBatches(batches);
  EXPECT_TRUE(Feed(source, 2, 5, 5).empty());
}

TEST(BatchFeed, LeavingEarlyStopsTheReader) {
  const TinyRun run;
  const TrainBatches batches(*run.data.train, 4, 1);
  const BatchParts source = WholeBatches(batches);
  BatchFeed feed(source, *run.executor, 2, {&kFour, 1});
  EXPECT_TRUE(feed.Start(0, 1'000'000'000).ok());
}

// Eight by eight images; the ring of the run is larger than necessary.
TEST(BatchFeed, AnErrorOfTheDataComesOut) {
  const NumberedDataset dataset(8, /*broken_index=*/5);
  const EvalBatches source(dataset, 4);
  const TinyRun run;
  for (const int64_t slots : {0, 2}) {
    BatchFeed feed(source, *run.executor, slots, {&kFour, 1});
    EXPECT_TRUE(feed.Start(0, 2).ok());
    ImageBatch batch = RoomFor(source, 0);
    ASSERT_TRUE(feed.Next(0, Views(batch)).ok());
    EXPECT_EQ(batch.labels, (std::vector<int32_t>{0, 1, 2, 3}));
    const Result<void> broken = feed.Next(1, Views(batch));
    ASSERT_FALSE(broken.ok());
    EXPECT_EQ(broken.error().message, "broken image");
  }
}

TEST(BatchFeedDeathTest, StepsOutOfOrder) {
  const TinyRun run;
  const TrainBatches batches(*run.data.train, 4, 1);
  const BatchParts source = WholeBatches(batches);
  ImageBatch batch = RoomFor(source, 1);
  EXPECT_DEATH(
      {
        BatchFeed feed(source, *run.executor, 2, {&kFour, 1});
        (void)feed.Start(0, 3);
        (void)feed.Next(1, Views(batch));
      },
      "the batch read ahead is not number 1");
}

}  // namespace
}  // namespace thimble
