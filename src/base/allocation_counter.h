// Counts heap and mapping calls of the whole program, in release builds too, so that "nothing is
// allocated during a step" is measured, not assumed.
//
// Counting requires replacing malloc and mmap for the whole program. Programs opt in by linking
// malloc_interposer.cc (target thimble_malloc_counter); the library itself never replaces anything.
// Sanitizers replace malloc themselves: there a hook counts, which misses mmap and, with
// ThreadSanitizer, aligned allocations.
#pragma once

#include <atomic>
#include <cstdint>

namespace thimble {

struct AllocationCounts {
  int64_t heap_calls = 0;  // malloc, calloc, realloc, aligned_alloc, operator new, …
  int64_t heap_bytes = 0;  // requested in total; frees are not subtracted
  int64_t map_calls = 0;   // mmap
};

// Counts since the program started; always zero if the interposer is not linked.
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
