// In place: an output reuses the bytes of an input that is not read afterwards.
#pragma once

#include <memory>
#include <vector>

#include "thimble/plan/pass.h"

namespace thimble {

// Reads: liveness.  Changes: storage.  Keeps: results bit for bit.  Costs: nothing.
std::unique_ptr<PlanPass> MakeInPlacePass();

// The storage of every value if each op works in place wherever it can, by ValueId.
std::vector<ValueId> ShareInPlace(const PlanDraft& draft, const OpRegistry& ops);

}  // namespace thimble
