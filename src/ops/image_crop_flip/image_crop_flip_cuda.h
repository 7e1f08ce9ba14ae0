// image_crop_flip on a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ImageCropFlipCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
