// The kernel of batch_norm_update for a GPU: the norms of consecutive steps in one launch, as each
// is less work than a launch. On a CPU the reference is the only one.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
