// The GPU code of dropout.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/ops/dropout/dropout_draw.h"

namespace thimble {

struct DropoutInputs {
  int64_t batch;
  int64_t elements;        // of a sample
  const float* x;          // (B, elements)
  const int32_t* samples;  // (B)
  const int32_t* epoch;    // (1)
};

// y (B, elements) may be in.x.
void LaunchDropout(cudaStream_t stream, const DropoutDraw& draw, const DropoutInputs& in, float* y);

}  // namespace thimble
