#include "thimble/data/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/data/batch_memory.h"
#include "tests/data/fake_dataset.h"
#include "tests/support/scarce_threads.h"

namespace thimble {
namespace {

constexpr int64_t kRingBatch = 4;

// Slots with their own memory.
class Slots {
 public:
  Slots(size_t num_slots, int64_t image_bytes)
      : batches_(num_slots, ImageBatch(kRingBatch, image_bytes)) {}

  std::vector<SlotMemory> memory() const {
    std::vector<SlotMemory> slots;
    for (ImageBatch& batch : batches_) slots.push_back(batch.arrays());
    return slots;
  }

 private:
  mutable std::vector<ImageBatch> batches_;
};

class PrefetcherTest : public ::testing::Test {
 protected:
  NumberedDataset dataset_{30};
  TrainBatches batches_{dataset_, kRingBatch, 1};
  BatchParts whole_ = WholeBatches(batches_);

  // Takes the next batch, compares it with a direct Fill and releases it.
  void ExpectNextIs(Prefetcher& prefetcher, int64_t step) {
    const auto batch = prefetcher.Next();
    ASSERT_TRUE(batch.ok()) << batch.error().message;
    const ImageBatch expected = Filled(whole_, step);
    EXPECT_EQ(batch->number, step);
    ASSERT_EQ(batch->arrays.size(), 2U);
    EXPECT_TRUE(std::ranges::equal(ArrayOf<uint8_t>(batch->arrays[0]), expected.images));
    EXPECT_TRUE(std::ranges::equal(ArrayOf<int32_t>(batch->arrays[1]), expected.labels));
    prefetcher.Release();
  }
};

TEST_F(PrefetcherTest, GivesTheSameBatchesAsFill) {
  for (const size_t num_slots : {1, 2, 3, 7}) {
    const Slots slots(num_slots, batches_.image_bytes());
    Prefetcher prefetcher(whole_, slots.memory());
    EXPECT_TRUE(prefetcher.Start(5, 60).ok());
    for (int64_t step = 5; step < 60; ++step) ExpectNextIs(prefetcher, step);
  }
}

// Numbers may leave gaps.
TEST_F(PrefetcherTest, FollowsTheNumbersOfTheSource) {
  const BatchParts parts(batches_, [](const BatchShape& shape) {  // 4 as 3 and 1, 2 as one
    return shape.samples == 4 ? NearlyEqualParts{4, 2} : NearlyEqualParts{shape.samples, 1};
  });
  const Slots slots(3, batches_.image_bytes());
  Prefetcher prefetcher(parts, slots.memory());
  EXPECT_TRUE(prefetcher.Start(parts.FirstPart(3), parts.FirstPart(20)).ok());
  for (int64_t part = parts.FirstPart(3); part < parts.FirstPart(20); part = parts.After(part)) {
    const auto batch = prefetcher.Next();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->number, part);
    const ImageBatch expected = Filled(parts, part);
    EXPECT_TRUE(std::ranges::equal(ArrayOf<int32_t>(batch->arrays[1]), expected.labels));
    prefetcher.Release();
  }
}

TEST_F(PrefetcherTest, SeveralBatchesMayBeHeld) {
  const Slots slots(3, batches_.image_bytes());
  Prefetcher prefetcher(whole_, slots.memory());
  EXPECT_TRUE(prefetcher.Start(0, 20).ok());
  const auto first = prefetcher.Next();
  const auto second = prefetcher.Next();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->number, 0);
  EXPECT_EQ(second->number, 1);
  EXPECT_NE(first->arrays[0].data(), second->arrays[0].data());
  prefetcher.Release();
  prefetcher.Release();
  ExpectNextIs(prefetcher, 2);
}

TEST_F(PrefetcherTest, StopsWithAFullRingAndStartsAgain) {
  const Slots slots(2, batches_.image_bytes());
  Prefetcher prefetcher(whole_, slots.memory());
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
  Prefetcher prefetcher(whole_, slots.memory());
  EXPECT_TRUE(prefetcher.Start(0, 1000).ok());
  EXPECT_TRUE(prefetcher.Next().ok());
}

TEST_F(PrefetcherTest, ErrorComesAfterTheGoodBatchesAndStays) {
  const NumberedDataset broken(30, /*broken_index=*/13);  // in step 3 of the batches in order
  const EvalBatches batches(broken, kRingBatch);
  const Slots slots(2, batches.image_bytes());
  Prefetcher prefetcher(batches, slots.memory());
  EXPECT_TRUE(prefetcher.Start(0, batches.num_batches()).ok());
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
  EXPECT_EQ(ArrayOf<int32_t>(batch->arrays[1])[0], 16);
}

TEST_F(PrefetcherTest, AThreadThatCannotBeStartedIsAnError) {
  const Slots slots(2, batches_.image_bytes());
  Prefetcher prefetcher(whole_, slots.memory());
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
  EXPECT_DEATH(Prefetcher(whole_, {}), "without slots");
  EXPECT_DEATH((void)Prefetcher(whole_, slots.memory()).Next().ok(), "Next without Start");
  EXPECT_DEATH(Prefetcher(whole_, slots.memory()).Release(), "Release without Next");
}

}  // namespace
}  // namespace thimble
