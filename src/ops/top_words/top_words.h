// Kernel of top_words: matrix products (device/cpu/gemm) over slices of the vocabulary, a block of
// hypotheses at a time.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct TopWordsCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
