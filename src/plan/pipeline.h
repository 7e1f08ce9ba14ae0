// From a graph to a Plan: runs the passes in order and records what each one saved.
#pragma once

#include <memory>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/plan/draft.h"
#include "thimble/plan/pass.h"
#include "thimble/plan/plan.h"

namespace thimble {

// All passes in the order in which they run.
std::vector<std::unique_ptr<PlanPass>> PlanPasses();

// The passes that can be left out: techniques that every plan uses by default.
std::vector<PassInfo> OptionalPasses();

// Fails unless every pass to be left out exists and can be left out.
Result<void> CheckSkippedPasses(const PlanOptions& options);

// Plans one graph above the given residents, which must include every persistent value of the
// graph. The result has passed VerifyPlan.
Result<Plan> MakePlan(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                      const PlanOptions& options);

}  // namespace thimble
