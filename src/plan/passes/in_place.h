// In place: an output takes over the bytes of an input that nobody reads afterwards.
#pragma once

#include <memory>
#include <vector>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness.  Changes: storage.  Keeps: results bit for bit.  Costs: nothing.
std::unique_ptr<PlanPass> MakeInPlacePass();

// The storage of every value when each op works in place wherever it may, by ValueId.
std::vector<ValueId> ShareInPlace(const PlanDraft& draft, const OpRegistry& ops);

}  // namespace thimble
