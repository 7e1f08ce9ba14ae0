// add on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AddCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
