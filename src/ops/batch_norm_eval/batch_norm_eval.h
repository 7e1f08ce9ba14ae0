// Kernels of batch_norm_eval and batch_norm_eval_grad, limited by memory bandwidth: built from
// batch_norm's passes over channels and its GPU code.
#pragma once

#include "thimble/ops/batch_norm/batch_norm.h"

namespace thimble {

struct BatchNormEvalCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormEvalGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormEvalCuda : FewParts {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct BatchNormEvalGradCuda : FewParts {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
