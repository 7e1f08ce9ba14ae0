// CPU kernels of linear and its gradients: plain matrix products (device/cpu/gemm), and a column
// sum.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct LinearCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct LinearGradWeightCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct LinearGradBiasCpu {
  static void Run(const KernelCall& call);
};

struct LinearGradInputCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
