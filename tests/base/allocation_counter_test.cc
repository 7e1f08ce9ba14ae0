// This program links the counting malloc (tests/CMakeLists.txt).
#include "thimble/base/allocation_counter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string_view>
#include <thread>

namespace thimble {
namespace {

void* volatile sink = nullptr;  // so that no allocation is optimised away

template <class Work>
AllocationCounts CountsOf(const Work& work) {
  const AllocationCounts before = ReadAllocationCounts();
  work();
  const AllocationCounts after = ReadAllocationCounts();
  return {after.heap_calls - before.heap_calls, after.heap_bytes - before.heap_bytes,
          after.map_calls - before.map_calls};
}

TEST(AllocationCounterTest, ThisProgramCounts) { EXPECT_TRUE(CountsAllocations()); }

TEST(AllocationCounterTest, NothingIsNothing) {
  const AllocationCounts counts = CountsOf([] {});
  EXPECT_EQ(counts.heap_calls, 0);
  EXPECT_EQ(counts.heap_bytes, 0);
  EXPECT_EQ(counts.map_calls, 0);
}

// ThreadSanitizer's hook does not see aligned blocks.
#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesAlignedBlocks = false;
#else
constexpr bool kSeesAlignedBlocks = true;
#endif

TEST(AllocationCounterTest, CountsEveryWayToTheHeap) {
  struct Way {
    const char* name;
    void (*allocate)();
    int64_t bytes;
  };
  for (const Way& way : {Way{"malloc", [] { sink = std::malloc(100); }, 100},
                         Way{"calloc", [] { sink = std::calloc(10, 10); }, 100},
                         Way{"realloc", [] { sink = std::realloc(nullptr, 100); }, 100},
                         Way{"aligned_alloc", [] { sink = std::aligned_alloc(64, 128); }, 128},
                         Way{"posix_memalign",
                             [] {
                               void* block = nullptr;
                               EXPECT_EQ(posix_memalign(&block, 64, 100), 0);
                               sink = block;
                             },
                             100}}) {
    const AllocationCounts counts = CountsOf(way.allocate);
    std::free(sink);
    const bool seen =
        kSeesAlignedBlocks || std::string_view(way.name).find("align") == std::string_view::npos;
    EXPECT_EQ(counts.heap_calls, seen ? 1 : 0) << way.name;
    EXPECT_EQ(counts.heap_bytes, seen ? way.bytes : 0) << way.name;
  }
}

TEST(AllocationCounterTest, CountsNewOfAllKinds) {
  struct alignas(64) Line {
    char bytes[64];
  };
  const AllocationCounts counts = CountsOf([] {
    auto* number = new int(5);
    sink = number;
    delete number;
    auto* array = new char[50];
    sink = array;
    delete[] array;
    auto* line = new Line;
    sink = line;
    delete line;
  });
  EXPECT_EQ(counts.heap_calls, 3);
  EXPECT_EQ(counts.heap_bytes, 4 + 50 + 64);
}

TEST(AllocationCounterTest, FreeingSubtractsNothing) {
  sink = std::malloc(100);
  const AllocationCounts counts = CountsOf([] { std::free(sink); });
  EXPECT_EQ(counts.heap_calls, 0);
  EXPECT_EQ(counts.heap_bytes, 0);
}

TEST(AllocationCounterTest, CountsOtherThreads) {
  const AllocationCounts counts = CountsOf([] {
    std::thread([] {
      for (int i = 0; i < 1000; ++i) {
        void* block = std::malloc(7);
        sink = block;
        std::free(block);
      }
    }).join();
  });
  EXPECT_GE(counts.heap_calls, 1000);
  EXPECT_GE(counts.heap_bytes, 7000);
}

TEST(AllocationCounterTest, CountsMappings) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers own mmap (see malloc_interposer.cc)";
#endif
  const AllocationCounts counts = CountsOf([] {
    void* pages = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    static_cast<char*>(pages)[8191] = 1;
    munmap(pages, 8192);
  });
  EXPECT_EQ(counts.map_calls, 1);
  EXPECT_EQ(counts.heap_calls, 0);
}

TEST(AllocationCounterTest, FailedMappingsFailAsEver) {
  void* pages = mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(pages, MAP_FAILED);
}

}  // namespace
}  // namespace thimble
