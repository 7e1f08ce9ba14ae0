// dropout on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct DropoutCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
