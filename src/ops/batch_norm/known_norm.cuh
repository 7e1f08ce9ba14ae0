// Normalization with known statistics on a GPU, and the choice of kernel instance.
//
// x, y, dy, dx, other: (rows, C), at multiples of 16 bytes; mean and variance: (parts, C); all
// other arrays: (C). Outputs may overwrite inputs if the ops allow it.
#pragma once

#include <type_traits>

#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/channel_norm.cuh"

namespace thimble {

// A norm whose statistics are known.
struct KnownNorm {
  const float* gamma;
  const float* beta;
  const float* mean;
  const float* variance;
  double epsilon;
  bool relu;
};

struct BatchNormGradArrays {
  const float* x;
  const float* dy;
  const float* other;  // null, or added to dx
  double* partials;    // scratch: blocks.num_partials()
  float* dx;
  float* dgamma;
  float* dbeta;
};

// For x of shape (..., C), its samples divided into parts as attribute `group` says.
ChannelBlocks BlocksFor(const Shape& x, const Attributes& attributes);
// y from known statistics, bit-identical to batch_norm.
void LaunchNormalize(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                     const float* x, float* y);
// The gradient if the statistics are constants; `other` is not used. Two launches: sums of the
// chunks; merging them and combining.
void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const BatchNormGradArrays& arrays);

// The second warp loads, while the first may have sums to finish.
inline constexpr int kLoadingThread = 32;
static_assert(kMaxGroupChannels <= kLoadingThread);

// Fills the constants of the block's channels. All threads call it; a barrier must follow.
inline __device__ void LoadGroup(const ChannelBlocks& blocks, const KnownNorm& norm,
                                 GroupNorm& group) {
  ForEachChannelOfGroup(blocks, kLoadingThread, [&](int place, int64_t channel) {
    const int64_t statistic = StatisticOfThisPart(blocks, channel);
    group.mean[place] = norm.mean[statistic];
    group.scale[place] = ChannelScale(norm.gamma[channel], norm.variance[statistic], norm.epsilon);
    group.shift[place] = norm.beta[channel];
  });
}

// Calls body(vector, relu) with both as compile-time constants.
template <class Body>
void WithConstants(int vector, bool relu, const Body& body) {
  using Four = std::integral_constant<int, 4>;
  using One = std::integral_constant<int, 1>;
  if (vector == 4) {
    relu ? body(Four(), std::true_type()) : body(Four(), std::false_type());
  } else {
    relu ? body(One(), std::true_type()) : body(One(), std::false_type());
  }
}

}  // namespace thimble
