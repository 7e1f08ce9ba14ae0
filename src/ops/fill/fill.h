// The kernel of fill for a GPU. On a CPU the reference is the only one.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct FillCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
