#include "thimble/base/allocation_counter.h"

namespace thimble {
namespace internal {
namespace {
constinit AllocationTally tally;
}  // namespace

AllocationTally& Tally() { return tally; }

}  // namespace internal

AllocationCounts ReadAllocationCounts() {
  const internal::AllocationTally& tally = internal::Tally();
  return {tally.heap_calls.load(std::memory_order_relaxed),
          tally.heap_bytes.load(std::memory_order_relaxed),
          tally.map_calls.load(std::memory_order_relaxed)};
}

bool CountsAllocations() { return internal::Tally().active.load(std::memory_order_relaxed); }

}  // namespace thimble
