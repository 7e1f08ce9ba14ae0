// Kernels of image_crop_flip, limited by memory bandwidth: one image per chunk of work, or per
// block of a GPU.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct ImageCropFlipCpu {
  static void Run(const KernelCall& call);
};

struct ImageCropFlipCuda {
  static void Run(const KernelCall& call);
};

}  // namespace thimble
