// sgd_update and sgd_update_plain on a GPU: all tensors of a network in one launch.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct SgdUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

struct SgdUpdatePlainCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
