// Kernels of clear, limited by memory bandwidth.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ClearCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct ClearCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
