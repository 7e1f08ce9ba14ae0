// What the kernels of dropout read from a call.
#pragma once

#include "thimble/graph/kernel.h"
#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

inline DropoutDraw DrawOf(const KernelCall& call) {
  return {static_cast<uint64_t>(call.attributes.Int("seed")),
          static_cast<uint32_t>(call.attributes.Int("stream")), call.attributes.Float("rate")};
}

// Elements of one sample of x (B, ...).
inline int64_t ElementsPerSample(const Shape& x) { return x[0] == 0 ? 0 : x.elements() / x[0]; }

}  // namespace thimble
