// Kernels of top_words: matrix products (device/cpu/gemm) over slices of the vocabulary, a block of
// hypotheses at a time.
#pragma once

#include "thimble/device/cuda/math.h"
#include "thimble/graph/kernel.h"

namespace thimble {

struct TopWordsCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// On a GPU, some hypotheses at a time with the whole vocabulary.
struct TopWordsTf32Cuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr double kRounding = kTf32Rounding;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};
struct TopWordsShortCuda : TopWordsTf32Cuda {
  static constexpr double kRounding = kShortRounding;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};
struct TopWordsFp32Cuda : TopWordsTf32Cuda {
  static constexpr double kRounding = 1;
  static constexpr std::string_view kOption = kFp32Option;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
