// Normalization with known statistics on a GPU.
//
// x, y, dy, dx, other: (rows, C), numbers of any type at multiples of 16 bytes; mean and variance:
// (parts, C); all other arrays: (C). Outputs may overwrite inputs if the ops allow it.
#pragma once

#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/channel_norm.cuh"
#include "thimble/ops/batch_norm/norm_gradients.cuh"

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

// For x of shape (..., C), its samples divided into parts as attribute `group` says.
ChannelBlocks BlocksFor(const Shape& x, const Attributes& attributes);
// y from known statistics, bit-identical to batch_norm.
void LaunchNormalize(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                     ConstNumbers x, Numbers y);
// The gradient if the statistics are constants; `other` is not used. Two launches: sums of the
// chunks; merging them and combining.
void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const GradientTensors<AnyNumber>& tensors,
                             const GradientSums& sums);

// The second warp loads, while the first may have other constants to compute.
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

}  // namespace thimble
