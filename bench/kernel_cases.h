// KernelCase: a kernel with one set of shapes and attributes, as the steps of a plan call it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/plan/cost.h"
#include "thimble/plan/plan.h"

namespace thimble {

struct KernelCase {
  std::string name;  // "conv2d/Conv2dCpu/100x32x32x16_32x3x3x16/padding=1", unique
  const OpDef* op = nullptr;
  const Kernel* kernel = nullptr;
  std::vector<Shape> inputs;
  std::vector<Shape> outputs;
  Attributes attributes;
  std::vector<std::pair<size_t, size_t>>
      in_place;  // (output, input) that share an address in the plan
  NodeCost cost;
  int64_t calls_per_step = 0;

  OpCall call() const { return {inputs, outputs, attributes}; }
};

// Every distinct call of the plan, in its order, for each kernel that accepts it. The reference is
// included only if an op has no other kernel. Calls that differ only in fractional attributes
// (epsilon, weight decay) are the same work and count as one.
std::vector<KernelCase> DistinctKernelCases(const Plan& plan, const OpRegistry& ops);

}  // namespace thimble
