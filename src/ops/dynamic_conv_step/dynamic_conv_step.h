// Kernels of dynamic_conv_step, limited by reading the history, once and in its storage type. A
// task is one head of one sentence: no other task reads or writes its part of the history, so that
// the next version may overwrite it.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct DynamicConvStepCpu {
  static constexpr bool kTakesShortNumbers = true;
  // For each thread the weights of a head and, where x or y store 16 bits, its channels.
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct DynamicConvStepCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
