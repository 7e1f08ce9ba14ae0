// CPU kernel of image_crop_flip: an image for each chunk.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ImageCropFlipCpu {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
