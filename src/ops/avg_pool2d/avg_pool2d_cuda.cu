#include <cuda_runtime.h>

#include <algorithm>
#include <array>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/avg_pool2d/avg_pool2d.h"

namespace thimble {
namespace {

struct PoolGeometry {
  PoolWindow window;
  float factor;  // 1 / (elements of a window)
  int64_t batch, height, width, channels;
  int64_t pooled_height, pooled_width;
};

// `x` has the image's shape, `y` the pooled one; both (B, H, W, C).
PoolGeometry GeometryOf(const Attributes& attributes, const Shape& x, const Shape& y) {
  const PoolWindow window{attributes.Int("kernel"), attributes.Int("stride")};
  const double factor = 1.0 / static_cast<double>(window.kernel * window.kernel);
  return {window, static_cast<float>(factor), x[0], x[1], x[2], x[3], y[1], y[2]};
}

// A block is kPoolLanes neighbouring channels wide and kPoolParts deep: the parts divide the rows
// of a window, or the columns of an image, among them.
constexpr int kPoolLanes = 32;
constexpr int kPoolParts = 8;
constexpr int64_t kMaxPoolBlocks = 1 << 20;  // blocks loop over the remaining work

// One window of x for kPoolLanes channels: part p sums rows p, p + kPoolParts, ..., then the parts
// are added in their order.
template <class Storage>
__global__ void __launch_bounds__(kPoolLanes* kPoolParts)
    AvgPool2dKernel(PoolGeometry g, InNumbers<Storage> x, OutNumbers<Storage> y) {
  __shared__ float sums[kPoolParts][kPoolLanes];
  const int64_t channel_groups = (g.channels - 1) / kPoolLanes + 1;
  WaitForKernelsBefore();
  const int64_t items = g.batch * g.pooled_height * g.pooled_width * channel_groups;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int64_t c = item % channel_groups * kPoolLanes + threadIdx.x;
    const int64_t position = item / channel_groups;
    const int64_t left = position % g.pooled_width * g.window.stride;
    const int64_t top = position / g.pooled_width % g.pooled_height * g.window.stride;
    const int64_t b = position / g.pooled_width / g.pooled_height;
    float sum = 0;
    if (c < g.channels) {
      for (int64_t h = threadIdx.y; h < g.window.kernel; h += kPoolParts) {
        const auto row = x + (((b * g.height + top + h) * g.width + left) * g.channels + c);
        for (int64_t w = 0; w < g.window.kernel; ++w) sum += LoadNumber(row + w * g.channels);
      }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < g.channels) {
      for (int part = 1; part < kPoolParts; ++part) sum += sums[part][threadIdx.x];
      StoreNumber(sum * g.factor, y + (position * g.channels + c));
    }
    __syncthreads();  // before the next round overwrites the sums
  }
}

// One row of dx: each part takes every kPoolParts-th column.
template <class Storage>
__global__ void __launch_bounds__(kPoolLanes* kPoolParts)
    AvgPool2dGradKernel(PoolGeometry g, InNumbers<Storage> dy, OutNumbers<Storage> dx) {
  const int64_t rows = g.batch * g.height;
  WaitForKernelsBefore();
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const int64_t h = row % g.height;
    const int64_t b = row / g.height;
    const int64_t top = g.window.First(h);
    const int64_t bottom = g.window.End(h, g.pooled_height);
    for (int64_t w = threadIdx.y; w < g.width; w += kPoolParts) {
      const int64_t left = g.window.First(w);
      const int64_t right = g.window.End(w, g.pooled_width);
      for (int64_t c = threadIdx.x; c < g.channels; c += kPoolLanes) {
        float sum = 0;
        for (int64_t ph = top; ph < bottom; ++ph) {
          for (int64_t pw = left; pw < right; ++pw) {
            const int64_t position = (b * g.pooled_height + ph) * g.pooled_width + pw;
            sum += LoadNumber(dy + (position * g.channels + c));
          }
        }
        StoreNumber(sum * g.factor, dx + ((row * g.width + w) * g.channels + c));
      }
    }
  }
}

unsigned PoolBlocks(int64_t items) {
  return static_cast<unsigned>(std::min(items, kMaxPoolBlocks));
}

// Calls launch(storage, input, output).
template <class Launch>
void WithTensors(const KernelCall& call, const Launch& launch) {
  const std::array types{call.inputs[0].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto storage) {
    using Storage = decltype(storage);
    launch(storage, As<Storage>(ConstNumbersOf(call.inputs[0])),
           As<Storage>(NumbersOf(call.outputs[0])));
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace

void AvgPool2dCuda::Run(const KernelCall& call) {
  const PoolGeometry g = GeometryOf(call.attributes, call.in_shape(0), call.out_shape(0));
  const int64_t positions = g.batch * g.pooled_height * g.pooled_width;
  if (positions * g.channels == 0) return;
  const int64_t channel_groups = (g.channels - 1) / kPoolLanes + 1;
  WithTensors(call, [&](auto storage, const auto& x, const auto& y) {
    AvgPool2dKernel<decltype(storage)>
        <<<PoolBlocks(positions * channel_groups), dim3(kPoolLanes, kPoolParts), 0, call.stream>>>(
            g, x, y);
  });
}

void AvgPool2dGradCuda::Run(const KernelCall& call) {
  const PoolGeometry g = GeometryOf(call.attributes, call.out_shape(0), call.in_shape(0));
  const int64_t rows = g.batch * g.height;
  if (rows * g.width * g.channels == 0) return;
  WithTensors(call, [&](auto storage, const auto& dy, const auto& dx) {
    AvgPool2dGradKernel<decltype(storage)>
        <<<PoolBlocks(rows), dim3(kPoolLanes, kPoolParts), 0, call.stream>>>(g, dy, dx);
  });
}

}  // namespace thimble
