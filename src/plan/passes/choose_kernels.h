// Kernel choice: for every node the first kernel of the device that accepts it, with its scratch.
// Kernels with an option are used only if the user requested it.
#pragma once

#include <memory>

#include "thimble/plan/pass.h"

namespace thimble {

// The kernel for one node, which need not be in the graph but whose values must be.
Result<KernelChoice> ChooseKernel(const Graph& graph, const OpRegistry& ops, const Node& node,
                                  const PlanOptions& options);

// Reads: shapes.  Changes: kernels.  Not a technique: every plan needs it and it cannot be skipped.
std::unique_ptr<PlanPass> MakeChooseKernelsPass();

}  // namespace thimble
