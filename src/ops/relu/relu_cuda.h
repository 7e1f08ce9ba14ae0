// relu and relu_grad on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ReluCuda {
  static void Run(const KernelCall& call);
};

struct ReluGradCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
