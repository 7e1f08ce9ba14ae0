// From a graph to a Plan: the passes in their one order, each verified and accounted for.
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

// Those that can be left out: each is a technique that every plan has.
std::vector<PassInfo> OptionalPasses();

// Whether every pass to be left out exists and can be left out.
Result<void> CheckSkippedPasses(const PlanOptions& options);

// Plans one graph above the given residents, which must hold every persistent value of the graph.
// The result has passed VerifyPlan.
Result<Plan> MakePlan(const Graph& graph, const OpRegistry& ops, const ResidentLayout& residents,
                      const PlanOptions& options);

}  // namespace thimble
