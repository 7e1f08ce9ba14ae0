#include <cuda_runtime.h>

#include <algorithm>

#include "thimble/device/cuda/check.h"
#include "thimble/ops/avg_pool2d/avg_pool2d_device.h"

namespace thimble {
namespace {

// A block is kLanes neighbouring channels wide and kParts deep: the parts share the rows of a
// window, or the columns of an image.
constexpr int kLanes = 32;
constexpr int kParts = 8;
constexpr int64_t kMaxBlocks = 1 << 20;  // the rest is done in further rounds

// One window of x for kLanes channels: part p sums rows p, p + kParts, ..., then the parts are
// added in their order.
__global__ void __launch_bounds__(kLanes* kParts)
    AvgPool2dKernel(PoolGeometry g, const float* x, float* y) {
  __shared__ float sums[kParts][kLanes];
  const int64_t channel_groups = (g.channels - 1) / kLanes + 1;
  const int64_t items = g.batch * g.pooled_height * g.pooled_width * channel_groups;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t c = item % channel_groups * kLanes + threadIdx.x;
    const int64_t position = item / channel_groups;
    const int64_t left = position % g.pooled_width * g.window.stride;
    const int64_t top = position / g.pooled_width % g.pooled_height * g.window.stride;
    const int64_t b = position / g.pooled_width / g.pooled_height;
    float sum = 0;
    if (c < g.channels) {
      for (int64_t h = threadIdx.y; h < g.window.kernel; h += kParts) {
        const float* row = x + ((b * g.height + top + h) * g.width + left) * g.channels + c;
        for (int64_t w = 0; w < g.window.kernel; ++w) sum += row[w * g.channels];
      }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < g.channels) {
      for (int part = 1; part < kParts; ++part) sum += sums[part][threadIdx.x];
      y[position * g.channels + c] = sum * g.factor;
    }
    __syncthreads();  // before the next round overwrites the sums
  }
}

// One row of dx: each part takes every kParts-th column.
__global__ void __launch_bounds__(kLanes* kParts)
    AvgPool2dGradKernel(PoolGeometry g, const float* dy, float* dx) {
  const int64_t rows = g.batch * g.height;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t h = row % g.height;
    const int64_t b = row / g.height;
    const int64_t top = g.window.First(h);
    const int64_t bottom = g.window.End(h, g.pooled_height);
    for (int64_t w = threadIdx.y; w < g.width; w += kParts) {
      const int64_t left = g.window.First(w);
      const int64_t right = g.window.End(w, g.pooled_width);
      for (int64_t c = threadIdx.x; c < g.channels; c += kLanes) {
        float sum = 0;
        for (int64_t ph = top; ph < bottom; ++ph) {
          for (int64_t pw = left; pw < right; ++pw) {
            sum += dy[((b * g.pooled_height + ph) * g.pooled_width + pw) * g.channels + c];
          }
        }
        dx[(row * g.width + w) * g.channels + c] = sum * g.factor;
      }
    }
  }
}

unsigned Blocks(int64_t items) { return static_cast<unsigned>(std::min(items, kMaxBlocks)); }

}  // namespace

void LaunchAvgPool2d(cudaStream_t stream, const PoolGeometry& geometry, const float* x, float* y) {
  const int64_t positions = geometry.batch * geometry.pooled_height * geometry.pooled_width;
  if (positions * geometry.channels == 0) return;
  const int64_t channel_groups = (geometry.channels - 1) / kLanes + 1;
  AvgPool2dKernel<<<Blocks(positions * channel_groups), dim3(kLanes, kParts), 0, stream>>>(geometry,
                                                                                           x, y);
  THIMBLE_CUDA_LAUNCHED();
}

void LaunchAvgPool2dGrad(cudaStream_t stream, const PoolGeometry& geometry, const float* dy,
                         float* dx) {
  const int64_t rows = geometry.batch * geometry.height;
  if (rows * geometry.width * geometry.channels == 0) return;
  AvgPool2dGradKernel<<<Blocks(rows), dim3(kLanes, kParts), 0, stream>>>(geometry, dy, dx);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
