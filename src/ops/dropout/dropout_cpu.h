// CPU kernel of dropout: Philox on the lanes of a vector, a block of words at a time.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct DropoutCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
