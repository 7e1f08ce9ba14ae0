// CPU kernel of accumulate: one pass, limited by memory bandwidth.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AccumulateCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
