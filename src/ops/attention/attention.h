// Kernels of attention and its gradient, limited by the products of small matrices. A task is one
// head of one sentence: it packs keys and values once, then takes the queries a block at a time, so
// that only a block's scores exist. No other task touches its channels, so that outputs may
// overwrite inputs.
#pragma once

#include "thimble/graph/kernel.h"

namespace thimble {

struct AttentionCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct AttentionGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// On a GPU: also limited by products, on tensor cores, and for short sentences by the latency of
// reading the inputs once.
struct AttentionCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static void Run(const KernelCall& call);
};

// Scratch, unless a head fits in a block: dq as floats, and three numbers for each query and head.
struct AttentionGradCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
