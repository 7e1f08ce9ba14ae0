// image_normalize on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ImageNormalizeCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
