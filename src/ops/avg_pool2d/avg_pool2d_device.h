// The GPU code of avg_pool2d and avg_pool2d_grad.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "thimble/ops/avg_pool2d/pool_window.h"

namespace thimble {

struct PoolGeometry {
  PoolWindow window;
  float factor;  // 1 / (elements of a window)
  int64_t batch, height, width, channels;
  int64_t pooled_height, pooled_width;
};

// x, dx: (B, H, W, C); y, dy: (B, pooled H, pooled W, C).
void LaunchAvgPool2d(cudaStream_t stream, const PoolGeometry& geometry, const float* x, float* y);
void LaunchAvgPool2dGrad(cudaStream_t stream, const PoolGeometry& geometry, const float* dy,
                         float* dx);

}  // namespace thimble
