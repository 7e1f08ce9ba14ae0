#include "thimble/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "tests/support/scarce_threads.h"

namespace thimble {
namespace {

constexpr int64_t kRingBatch = 4;

// Slots with their own memory.
class Slots {
 public:
  Slots(size_t num_slots, int64_t image_bytes) {
    images_.resize(num_slots, std::vector<uint8_t>(static_cast<size_t>(kRingBatch * image_bytes)));
    labels_.resize(num_slots, std::vector<int32_t>(kRingBatch));
    for (size_t i = 0; i < num_slots; ++i) buffers_.push_back({images_[i], labels_[i]});
  }
  std::span<const BatchBuffer> buffers() const { return buffers_; }

 private:
  std::vector<std::vector<uint8_t>> images_;
  std::vector<std::vector<int32_t>> labels_;
  std::vector<BatchBuffer> buffers_;
};

class PrefetcherTest : public ::testing::Test {
 protected:
  NumberedDataset dataset_{30};
  TrainBatches batches_{dataset_, kRingBatch, 1};

  // Takes the next batch, compares it with a direct Fill and releases it.
  void ExpectNextIs(Prefetcher& prefetcher, int64_t step) {
    const auto batch = prefetcher.Next();
    ASSERT_TRUE(batch.ok()) << batch.error().message;
    std::vector<uint8_t> images(static_cast<size_t>(kRingBatch * batches_.image_bytes()));
    std::vector<int32_t> labels(kRingBatch);
    ASSERT_TRUE(batches_.Fill(step, images, labels).ok());
    EXPECT_EQ(batch->step, step);
    ASSERT_EQ(batch->count, batches_.CountAt(step));
    ASSERT_EQ(std::ssize(batch->images), batch->count * batches_.image_bytes());
    ASSERT_EQ(std::ssize(batch->labels), batch->count);
    EXPECT_TRUE(std::equal(batch->images.begin(), batch->images.end(), images.begin()));
    EXPECT_TRUE(std::equal(batch->labels.begin(), batch->labels.end(), labels.begin()));
    prefetcher.Release();
  }
};

TEST_F(PrefetcherTest, GivesTheSameBatchesAsFill) {
  for (const size_t num_slots : {1, 2, 3, 7}) {
    const Slots slots(num_slots, batches_.image_bytes());
    Prefetcher prefetcher(batches_, slots.buffers());
    EXPECT_TRUE(prefetcher.Start(5, 60).ok());
    for (int64_t step = 5; step < 60; ++step) ExpectNextIs(prefetcher, step);
  }
}

TEST_F(PrefetcherTest, SeveralBatchesMayBeHeld) {
  const Slots slots(3, batches_.image_bytes());
  Prefetcher prefetcher(batches_, slots.buffers());
  EXPECT_TRUE(prefetcher.Start(0, 20).ok());
  const auto first = prefetcher.Next();
  const auto second = prefetcher.Next();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->step, 0);
  EXPECT_EQ(second->step, 1);
  EXPECT_NE(first->images.data(), second->images.data());
  prefetcher.Release();
  prefetcher.Release();
  ExpectNextIs(prefetcher, 2);
}

TEST_F(PrefetcherTest, StopsWithAFullRingAndStartsAgain) {
  const Slots slots(2, batches_.image_bytes());
  Prefetcher prefetcher(batches_, slots.buffers());
  EXPECT_TRUE(prefetcher.Start(0, 1'000'000).ok());
  ExpectNextIs(prefetcher, 0);
  prefetcher.Stop();
  prefetcher.Stop();
  EXPECT_TRUE(prefetcher.Start(40, 43).ok());
  for (int64_t step = 40; step < 43; ++step) ExpectNextIs(prefetcher, step);
  prefetcher.Stop();
  EXPECT_TRUE(prefetcher.Start(3, 3).ok());  // nothing to do; the destructor ends it
}

TEST_F(PrefetcherTest, EndsWhileABatchIsHeld) {
  const Slots slots(2, batches_.image_bytes());
  Prefetcher prefetcher(batches_, slots.buffers());
  EXPECT_TRUE(prefetcher.Start(0, 1000).ok());
  EXPECT_TRUE(prefetcher.Next().ok());
}

TEST_F(PrefetcherTest, ErrorComesAfterTheGoodBatchesAndStays) {
  const NumberedDataset broken(30, /*broken_index=*/13);  // in step 3 of the batches in order
  const EvalBatches batches(broken, kRingBatch);
  const Slots slots(2, batches.image_bytes());
  Prefetcher prefetcher(batches, slots.buffers());
  EXPECT_TRUE(prefetcher.Start(0, batches.num_steps()).ok());
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_TRUE(prefetcher.Next().ok());
    prefetcher.Release();
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto batch = prefetcher.Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().message, "broken image");
  }
  prefetcher.Stop();
  EXPECT_TRUE(prefetcher.Start(4, 5).ok());
  const auto batch = prefetcher.Next();
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->labels[0], 16);
}

TEST_F(PrefetcherTest, AThreadThatCannotBeStartedIsAnError) {
  const Slots slots(2, batches_.image_bytes());
  Prefetcher prefetcher(batches_, slots.buffers());
  {
    const ScarceThreads scarce(0);
    const Result<void> started = prefetcher.Start(0, 20);
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(started.error().message,
                testing::AllOf(testing::StartsWith("cannot start the thread that reads batches"),
                               testing::HasSubstr("try --prefetch 0")));
  }
  prefetcher.Stop();
  ASSERT_TRUE(prefetcher.Start(0, 20).ok());
  ExpectNextIs(prefetcher, 0);
}

TEST_F(PrefetcherTest, WrongUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Slots slots(1, batches_.image_bytes());
  EXPECT_DEATH(Prefetcher(batches_, {}), "without slots");
  EXPECT_DEATH((void)Prefetcher(batches_, slots.buffers()).Next().ok(), "Next without Start");
  EXPECT_DEATH(Prefetcher(batches_, slots.buffers()).Release(), "Release without Next");
}

}  // namespace
}  // namespace thimble
