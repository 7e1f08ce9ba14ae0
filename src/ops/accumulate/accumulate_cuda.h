// accumulate on a GPU: the tensors of consecutive steps in one launch.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct AccumulateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
