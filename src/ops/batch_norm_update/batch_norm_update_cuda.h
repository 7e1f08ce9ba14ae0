// batch_norm_update on a GPU: all norms of a network in one launch.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
