// Reading images and sentences must not allocate: counts every operator new of this test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/data/batch_memory.h"
#include "tests/data/fake_dataset.h"
#include "tests/data/text/text_fixtures.h"
#include "thimble/data/batches.h"
#include "thimble/data/prefetcher.h"
#include "thimble/data/text/token_batches.h"

namespace {
std::atomic<int64_t> num_allocations = 0;
}  // namespace

// Not inlined, or the compiler sees free() meet operator new and warns.
[[gnu::noinline]] void* operator new(size_t size) {
  num_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace thimble {
namespace {

constexpr int64_t kBatch = 4;

void ExpectNoAllocation(const ImageData& data) {
  const TrainBatches batches(*data.train, kBatch, 1);
  const BatchParts whole = WholeBatches(batches);
  ImageBatch first(kBatch, batches.image_bytes());
  ImageBatch second = first;
  Prefetcher prefetcher(whole, {first.arrays(), second.arrays()});
  EXPECT_TRUE(prefetcher.Start(0, 20).ok());
  ASSERT_TRUE(prefetcher.Next().ok());  // the thread is running now
  const int64_t before = num_allocations.load();
  bool all_ok = true;
  for (int64_t step = 1; step < 20; ++step) {
    prefetcher.Release();
    all_ok = prefetcher.Next().ok() && all_ok;
  }
  EXPECT_EQ(num_allocations.load(), before);
  EXPECT_TRUE(all_ok);
}

TEST(AllocationTest, ShapesWithValidation) {
  const auto data = OpenImageData("shapes:50", {.seed = 1, .validation = 10});
  ASSERT_TRUE(data.ok());
  ExpectNoAllocation(*data);
}

TEST(AllocationTest, Cifar) {
  const TestFolder folder("allocation");
  WriteCifar10(folder);
  const auto data = OpenImageData("cifar10:" + folder.path(), {});
  ASSERT_TRUE(data.ok());
  ExpectNoAllocation(*data);
}

void ExpectNoAllocation(const TextDataset& dataset) {
  constexpr BatchLimits kLimits = {.max_tokens = 1024, .max_shapes = 4};
  const TokenBatches batches(dataset, kLimits, 1);
  std::vector<int32_t> memory(size_t{5} * kLimits.max_tokens);
  const auto part = [&](size_t number, int64_t size) {
    return std::span(memory).subspan(number * kLimits.max_tokens, static_cast<size_t>(size));
  };
  const int64_t before = num_allocations.load();
  bool all_ok = true;
  for (int64_t step = 0; step < 2 * batches.batches_per_epoch(); ++step) {
    const TokenBatch batch = batches.BatchAt(step);
    const BatchShape& shape = batches.shapes()[static_cast<size_t>(batch.shape)];
    const int64_t source = shape.samples * shape.source_length;
    const int64_t target = shape.samples * shape.target_length;
    const TokenArrays arrays = {part(0, source), part(1, shape.samples), part(2, target),
                                part(3, target), part(4, shape.samples)};
    all_ok = batches.Fill(batch, arrays).ok() && all_ok;
    all_ok = batches.TargetTokens(batch) > 0 && all_ok;
  }
  EXPECT_EQ(num_allocations.load(), before);
  EXPECT_TRUE(all_ok);
}

TEST(AllocationTest, Bitext) {
  const TestFolder folder("allocation_bitext");
  WriteBitext(folder);
  const auto data = OpenTextData("bitext:" + folder.path(), {});
  ASSERT_TRUE(data.ok());
  ExpectNoAllocation(*data->train);
  ExpectNoAllocation(*data->test);
}

TEST(AllocationTest, Numbers) {
  const auto data = OpenTextData("numbers:500,50", {});
  ASSERT_TRUE(data.ok());
  ExpectNoAllocation(*data->train);
}

}  // namespace
}  // namespace thimble
