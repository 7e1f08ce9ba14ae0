// Kernels of add: one pass, limited by memory bandwidth.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AddCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct AddCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
