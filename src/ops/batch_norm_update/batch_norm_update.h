// The GPU kernel of batch_norm_update: the norms of consecutive steps in one launch, because each
// takes less time than a launch. On a CPU the reference is the only kernel.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

// The optional input gradient_factor.
inline constexpr size_t kFactorInput = 4;

struct BatchNormUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
