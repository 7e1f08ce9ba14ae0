// Kernels of sgd_update and sgd_update_plain: one pass, limited by memory bandwidth.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

// The factors used by the CPU kernels.
struct SgdConstants {
  float learning_rate;
  float momentum;
  float weight_decay;
  bool nesterov;
};

struct SgdUpdateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct SgdUpdatePlainCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

// All tensors of a network in one launch.
struct SgdUpdateCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

struct SgdUpdatePlainCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
