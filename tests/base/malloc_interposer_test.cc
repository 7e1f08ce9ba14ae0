// This test program links the interposer, so allocations are counted here.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <thread>

#include "thimble/base/allocation_counter.h"

namespace thimble {
namespace {

// The allocations of `work`. Addresses go through a volatile, or the compiler removes malloc/free.
template <class Work>
AllocationCounts Counted(const Work& work) {
  const AllocationCounts before = ReadAllocationCounts();
  work();
  const AllocationCounts after = ReadAllocationCounts();
  return {after.heap_calls - before.heap_calls, after.heap_bytes - before.heap_bytes,
          after.map_calls - before.map_calls};
}

void* volatile escaped = nullptr;

TEST(MallocInterposer, SaysThatItCounts) { EXPECT_TRUE(CountsAllocations()); }

TEST(MallocInterposer, CountsMalloc) {
  const AllocationCounts counts = Counted([] {
    escaped = std::malloc(1000);
    std::free(escaped);
  });
  EXPECT_EQ(counts.heap_calls, 1);
  EXPECT_EQ(counts.heap_bytes, 1000);
}

TEST(MallocInterposer, CountsOperatorNew) {
  const AllocationCounts counts = Counted([] {
    const auto block = std::make_unique<char[]>(333);
    escaped = block.get();
  });
  EXPECT_EQ(counts.heap_calls, 1);
  EXPECT_EQ(counts.heap_bytes, 333);
}

TEST(MallocInterposer, CountsOtherThreads) {
  EXPECT_GE(Counted([] { std::thread([] { std::free(std::malloc(50)); }).join(); }).heap_calls, 1);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(MallocInterposer, CountsMappings) {
  const AllocationCounts counts = Counted([] {
    void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    EXPECT_EQ(munmap(page, 4096), 0);
  });
  EXPECT_EQ(counts.map_calls, 1);
}
#endif

TEST(MallocInterposer, CountsNothingWhereNothingIsAllocated) {
  const AllocationCounts counts = Counted([] { escaped = nullptr; });
  EXPECT_EQ(counts.heap_calls, 0);
  EXPECT_EQ(counts.map_calls, 0);
}

}  // namespace
}  // namespace thimble
