// The GPU kernel of fill. On a CPU the reference is the only kernel.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct FillCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
