// linear and its gradients on a GPU: products of matrices in plain floats, and a column sum.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct LinearCuda {
  static void Run(const KernelCall& call);
};

struct LinearGradWeightCuda {
  static void Run(const KernelCall& call);
};

struct LinearGradBiasCuda {
  static void Run(const KernelCall& call);
};

struct LinearGradInputCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
