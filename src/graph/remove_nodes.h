// Helpers for rewriting graphs: counting readers and removing nodes.
#pragma once

#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// How many times each value is read, by nodes or by the caller.
std::vector<int> CountReaders(const Graph& graph);

// Removes the marked nodes and values and renumbers the others. Nothing that stays may read, write
// or carry a removed value.
void RemoveNodes(Graph& graph, const std::vector<bool>& removed_nodes,
                 const std::vector<bool>& removed_values);

}  // namespace thimble
