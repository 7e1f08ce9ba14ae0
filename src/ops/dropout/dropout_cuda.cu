#include <algorithm>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/dropout/dropout.h"

namespace thimble {
namespace {

struct DropoutInputs {
  int64_t batch;
  int64_t elements;        // of a sample
  const float* x;          // (B, elements)
  const int32_t* samples;  // (B)
  const int32_t* epoch;    // (1)
};

// A launch has at most this many rows of blocks; blocks loop over the remaining samples.
constexpr int64_t kMaxSampleBlocks = 1 << 15;

__device__ float Dropped(const DropoutDraw& draw, uint32_t word, float x) {
  return draw.Keeps(word) ? x * draw.scale : 0.0F;
}

// The elements of one draw: all four at once if addresses allow it, otherwise one by one.
template <bool kAligned>
__device__ void DropFour(const DropoutDraw& draw, const std::array<uint32_t, 4>& words,
                         const float* x, float* y, int64_t count) {
  if constexpr (kAligned) {
    const float4 in = *reinterpret_cast<const float4*>(x);
    *reinterpret_cast<float4*>(y) =
        make_float4(Dropped(draw, words[0], in.x), Dropped(draw, words[1], in.y),
                    Dropped(draw, words[2], in.z), Dropped(draw, words[3], in.w));
  } else {
#pragma unroll
    for (int k = 0; k < kElementsPerDraw; ++k) {
      if (k < count) y[k] = Dropped(draw, words[k], x[k]);
    }
  }
}

// A row of blocks for each sample, a thread for each draw.
template <bool kAligned>
__global__ void __launch_bounds__(kElementThreads)
    DropoutKernel(DropoutDraw draw, DropoutInputs in, float* y) {
  const auto epoch = static_cast<uint32_t>(in.epoch[0]);
  const int64_t draws = (in.elements + kElementsPerDraw - 1) / kElementsPerDraw;
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t b = blockIdx.y; b < in.batch; b += gridDim.y) {
    const auto sample = static_cast<uint32_t>(in.samples[b]);
    for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < draws; i += step) {
      const int64_t element = i * kElementsPerDraw;
      const int64_t place = b * in.elements + element;
      DropFour<kAligned>(draw, draw.Words(epoch, sample, static_cast<uint32_t>(i)), in.x + place,
                         y + place, in.elements - element);
    }
  }
}

}  // namespace

void DropoutCuda::Run(const KernelCall& call) {
  const DropoutDraw draw = DrawOf(call);
  const Shape& x = call.in_shape(0);
  const DropoutInputs in{x[0], ElementsPerSample(x), call.In<float>(0), call.In<int32_t>(1),
                         call.In<int32_t>(2)};
  float* y = call.Out<float>(0);
  if (in.batch * in.elements == 0) return;
  const int64_t draws = (in.elements + kElementsPerDraw - 1) / kElementsPerDraw;
  const dim3 blocks(
      static_cast<unsigned>(std::min((draws - 1) / kElementThreads + 1, kMaxElementBlocks)),
      static_cast<unsigned>(std::min(in.batch, kMaxSampleBlocks)));
  if (in.elements % kElementsPerDraw == 0 && AllAligned16(in.x, y)) {
    DropoutKernel<true><<<blocks, kElementThreads, 0, call.stream>>>(draw, in, y);
  } else {
    DropoutKernel<false><<<blocks, kElementThreads, 0, call.stream>>>(draw, in, y);
  }
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace thimble
