// Code shared by forward and backward of group norm on a GPU: the sums of a block and the formulas,
// so that what forward computes and what backward compares with zero is bit-identical.
//
// x, y, dy, dx, other: (B, rows, C), numbers of any type at multiples of 16 bytes; gamma, beta,
// dgamma, dbeta: (C); mean, variance: (B, groups). Outputs may overwrite inputs if the ops allow
// it.
#pragma once

#include <cuda_runtime.h>

#include "thimble/ops/batch_norm/channel_rows.cuh"
#include "thimble/ops/group_norm/group_blocks.h"
#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/group_sizes.h"

namespace thimble {

inline GroupBlocks GroupBlocksFor(const Shape& x, const Attributes& attributes) {
  const GroupSizes sizes(x, attributes.Int("groups"));
  return {sizes.samples, sizes.rows, sizes.channels, sizes.groups};
}

// A norm whose statistics are known.
struct KnownGroupNorm {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  double epsilon;
  bool relu;
};

// From the inputs, which begin with x, gamma, beta, mean, variance.
inline KnownGroupNorm KnownNormOf(const KernelCall& call) {
  return {.gamma = call.In<float>(1),
          .beta = call.In<float>(2),
          .mean = call.In<float>(3),
          .variance = call.In<float>(4),
          .epsilon = call.attributes.Float("epsilon"),
          .relu = call.attributes.Int("relu") != 0};
}

struct TwoSums {
  double first = 0;
  double second = 0;
};

// Adds up the sums of a block's threads, as a fixed tree; all threads get the same bits. Called by
// all threads.
inline __device__ TwoSums AddUpBlock(TwoSums mine) {
  constexpr int kWarps = kGroupThreads / 32;
  __shared__ double of_warps[2][kWarps];
  for (int distance = 16; distance > 0; distance /= 2) {
    mine.first += __shfl_xor_sync(0xffffffffU, mine.first, distance);
    mine.second += __shfl_xor_sync(0xffffffffU, mine.second, distance);
  }
  __syncthreads();  // sums of the previous unit may still be read
  if (threadIdx.x % 32 == 0) {
    of_warps[0][threadIdx.x / 32] = mine.first;
    of_warps[1][threadIdx.x / 32] = mine.second;
  }
  __syncthreads();
  TwoSums all;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) {
    all.first += of_warps[0][warp];
    all.second += of_warps[1][warp];
  }
  return all;
}

// The stored statistics of a unit, and the factor for its elements.
struct UnitNorm {
  float mean;
  double inverse;

  __device__ UnitNorm(float the_mean, float variance, double epsilon)
      : mean(the_mean), inverse(1.0 / sqrt(variance + epsilon)) {}
};

// Constants of a thread's channels. Relu is bool, or a constant as a type.
template <int kVector, class Relu>
struct PackNorm {
  float mean;
  float scale[kVector];
  float shift[kVector];
  Relu relu;

  __device__ PackNorm(const UnitNorm& unit, const float* gamma, const float* beta, int64_t channel,
                      Relu with_relu)
      : mean(unit.mean), relu(with_relu) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      scale[v] = static_cast<float>(gamma[channel + v] * unit.inverse);
      shift[v] = beta[channel + v];
    }
  }
  __device__ float Centred(float x) const { return x - mean; }
  // `value`, an output or its gradient, after ReLU; NaN passes through.
  __device__ float Gated(float normalized, float value) const {
    return relu && normalized <= 0 ? 0.0F : value;
  }
  __device__ float Output(int v, float x) const {
    const float normalized = fmaf(Centred(x), scale[v], shift[v]);
    return Gated(normalized, normalized);
  }
  __device__ float Gradient(int v, float centred, float dy) const {
    return Gated(fmaf(centred, scale[v], shift[v]), dy);
  }
};

// Blocks of a launch; they loop over the remaining units.
inline unsigned NumBlocks(const GroupBlocks& blocks) {
  constexpr int64_t kMaxBlocks = 1 << 20;
  return static_cast<unsigned>(std::min(blocks.units(), kMaxBlocks));
}

}  // namespace thimble
