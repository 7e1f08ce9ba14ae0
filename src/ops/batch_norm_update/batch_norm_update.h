// The GPU kernel of batch_norm_update: the norms of consecutive steps in one launch, because each
// takes less time than a launch. On a CPU the reference is the only kernel.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
