// Kernels of image_normalize: one pass, limited by memory bandwidth.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

// Scratch holds each channel's constants, repeated until they fill whole vectors: with three
// channels, no vector starts at a pixel's first channel twice in a row.
struct ImageNormalizeCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct ImageNormalizeCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
