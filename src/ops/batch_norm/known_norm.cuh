// Norms by known statistics on a GPU, and the choice of the kernel that suits a norm.
#pragma once

#include <type_traits>

#include "thimble/ops/batch_norm/batch_norm_device.h"
#include "thimble/ops/batch_norm/channel_norm.cuh"

namespace thimble {

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
