// Kernels of embedding and embedding_grad, limited by memory bandwidth, and the fixed positions
// that embedding adds.
#pragma once

#include <algorithm>
#include <cmath>

#include "thimble/graph/kernel.h"

namespace thimble {

// Position p adds sin(p * f_i) to channel i and cos(p * f_i) to channel C/2 + i, where f_i falls
// from 1 to 1/10,000: this is f_i, for i in [0, C/2).
inline double PositionFrequency(int64_t i, int64_t channels) {
  const auto steps = static_cast<double>(std::max<int64_t>(1, channels / 2 - 1));
  return std::exp(-static_cast<double>(i) * std::log(10000.0) / steps);
}

struct EmbeddingCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct EmbeddingGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// Scratch: the positions.
struct EmbeddingCuda {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// Each block reads all tokens, and the rows of dy of its words.
struct EmbeddingGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

}  // namespace thimble
