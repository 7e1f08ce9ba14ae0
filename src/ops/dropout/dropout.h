// Kernels of dropout, and what they read from a call. On a CPU Philox runs on the lanes of a
// vector, a block of words at a time; on a GPU each thread draws for four elements.
#pragma once

#include "thimble/graph/kernel.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

struct DropoutCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

struct DropoutCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

inline DropoutDraw DrawOf(const KernelCall& call) {
  return {static_cast<uint64_t>(call.attributes.Int("seed")),
          static_cast<uint32_t>(call.attributes.Int("stream")), call.attributes.Float("rate")};
}

// Elements of one sample of x (B, ...).
inline int64_t ElementsPerSample(const Shape& x) { return x[0] == 0 ? 0 : x.elements() / x[0]; }

}  // namespace thimble
