// Orders of a graph's nodes that tend to keep few bytes alive.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// An order of all nodes of a graph, and how it was found.
struct FoundOrder {
  std::vector<NodeId> order;
  std::string_view how;
};

// Orders that respect data flow, phases and versions. Not ranked; the built order is not included.
std::vector<FoundOrder> FindOrders(const Graph& graph);

}  // namespace thimble
