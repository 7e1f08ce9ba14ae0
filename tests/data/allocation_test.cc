// Reading images must not allocate: counts every operator new of this test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "thimble/data/batches.h"
#include "thimble/data/prefetcher.h"

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
  std::vector<uint8_t> images(static_cast<size_t>(2 * kBatch * batches.image_bytes()));
  std::vector<int32_t> labels(2 * kBatch);
  const size_t half = images.size() / 2;
  const std::vector<BatchBuffer> slots = {
      {std::span(images).first(half), std::span(labels).first(kBatch)},
      {std::span(images).last(half), std::span(labels).last(kBatch)}};
  Prefetcher prefetcher(batches, slots);
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

}  // namespace
}  // namespace thimble
