// Counts heap and mapping calls of the whole program, in release builds too, so that "nothing is
// allocated during a step" is measured and not believed.
//
// Counting needs malloc and mmap to be replaced for the program. Programs opt in by linking
// malloc_interposer.cc (target thimble_malloc_counter); the library itself never replaces anything.
// Sanitizers own malloc: there a hook counts, which misses mmap and, with ThreadSanitizer, aligned
// blocks.
#pragma once

#include <atomic>
#include <cstdint>

namespace thimble {

struct AllocationCounts {
  int64_t heap_calls = 0;  // malloc, calloc, realloc, aligned_alloc, operator new, …
  int64_t heap_bytes = 0;  // asked for, never subtracted
  int64_t map_calls = 0;   // mmap
};

// What has been counted since the program started; zero for ever where nothing counts.
AllocationCounts ReadAllocationCounts();

// Whether this program counts its allocations.
bool CountsAllocations();

namespace internal {

// Written by the interposer, from any thread and before any constructor has run.
struct AllocationTally {
  std::atomic<bool> active{false};
  std::atomic<int64_t> heap_calls{0};
  std::atomic<int64_t> heap_bytes{0};
  std::atomic<int64_t> map_calls{0};
};
AllocationTally& Tally();

}  // namespace internal
}  // namespace thimble
