// What the audit found, as holdings: the plan's list with measured sizes in place of planned ones,
// so that both sides are added up by the same accounting.
#pragma once

#include <string>
#include <vector>

#include "thimble/exec/memory_audit.h"
#include "thimble/plan/memory/accounting.h"

namespace thimble {

// The holdings of the plan that was audited last (plan/memory/accounting.h), each with the bytes
// that were found in use. Values that share a buffer in turn all have what was found in the buffer.
// Requires a scan of the arena after that run: it measures the residents.
std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const MemoryAudit& audit);
// The same for a plan that was audited before: `buffers` is what measured_buffers() was then.
std::vector<Holding> MeasuredHoldings(const std::vector<Holding>& planned,
                                      const std::vector<size_t>& buffers, const MemoryAudit& audit);

// A holding of which more or less was in use than planned.
struct HoldingDifference {
  Holding planned;
  size_t measured_bytes = 0;
  friend bool operator==(const HoldingDifference&, const HoldingDifference&) = default;
};

// Where the lists differ in size, in their order. Requires two lists of the same holdings.
std::vector<HoldingDifference> DifferencesOf(const std::vector<Holding>& planned,
                                             const std::vector<Holding>& measured);

// "activations 'block1.out' of layer block1 in steps [3, 9): 80 bytes planned, 84 measured".
std::string ToString(const HoldingDifference& difference);

}  // namespace thimble
