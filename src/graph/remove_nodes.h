// What rewriting a graph needs: who reads what, and taking nodes out.
#pragma once

#include <vector>

#include "thimble/graph/graph.h"

namespace thimble {

// How often each value is read, by nodes or by the caller.
std::vector<int> CountReaders(const Graph& graph);

// Takes the marked nodes and values out and numbers the others anew. Nobody may read, write or
// carry what is removed any more.
void RemoveNodes(Graph& graph, const std::vector<bool>& removed_nodes,
                 const std::vector<bool>& removed_values);

}  // namespace thimble
