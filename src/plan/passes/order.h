// Execution order: among the orders that respect the data flow, one with fewer bytes alive at the
// peak.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "thimble/plan/pass.h"

namespace thimble {

// An order of all nodes of a graph, and how it was found.
struct FoundOrder {
  std::vector<NodeId> order;
  std::string_view how;
};

// Orders that tend to keep few bytes alive: other than the one as built, and not ranked.
std::vector<FoundOrder> FindOrders(const Graph& graph);

// Reads: liveness.  Changes: order within each phase.  Keeps: results bit for bit.  Costs: nothing.
std::unique_ptr<PlanPass> MakeOrderPass();

}  // namespace thimble
