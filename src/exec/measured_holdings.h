// The audit's results as holdings: the plan's list with measured instead of planned sizes, so that
// the same accounting adds up both.
#pragma once

#include <string>
#include <vector>

#include "thimble/exec/memory_audit.h"
#include "thimble/plan/memory/accounting.h"

namespace thimble {

// The holdings of the plan that was audited last (plan/memory/accounting.h), each with the bytes
// found in use. Values that share a buffer one after the other all get the size measured for the
// buffer. Requires a scan of the arena after that run: it measures the residents.
std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const MemoryAudit& audit);
// The same for a plan audited earlier; `buffers` is the value of measured_buffers() at that time.
std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const std::vector<size_t>& buffers, const MemoryAudit& audit);

// A holding whose measured size differs from the planned one.
struct HoldingDifference {
  Holding planned;
  size_t measured_bytes = 0;
  friend bool operator==(const HoldingDifference&, const HoldingDifference&) = default;
};

// The holdings whose sizes differ, in order. Requires two lists of the same holdings.
std::vector<HoldingDifference> DifferencesOf(const std::vector<Holding>& planned,
                                             const std::vector<Holding>& measured);

// "activations 'block1.out' of layer block1 in steps [3, 9): 80 bytes planned, 84 measured".
std::string ToString(const HoldingDifference& difference);

}  // namespace thimble
