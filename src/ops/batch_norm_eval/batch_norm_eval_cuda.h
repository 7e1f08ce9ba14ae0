// batch_norm_eval and batch_norm_eval_grad on a GPU, made of batch_norm's GPU code.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct BatchNormEvalCuda {
  static void Run(const KernelCall& call);
};

struct BatchNormEvalGradCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
