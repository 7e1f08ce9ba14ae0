// CPU kernels of batch_norm_eval and batch_norm_eval_grad, made of batch_norm's channel passes.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormEvalCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormEvalGradCpu {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
