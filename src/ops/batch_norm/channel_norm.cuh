// The formulas that forward and backward share on a GPU: what forward computes and what backward
// compares with zero is bit-identical.
#pragma once

#include "thimble/ops/batch_norm/channel_sums.cuh"

namespace thimble {

// gamma / sqrt(variance + epsilon), the scale of a channel.
inline __device__ float ChannelScale(float gamma, float variance, double epsilon) {
  return static_cast<float>(gamma / sqrt(variance + epsilon));
}

// Constants of a block's channels, in shared memory.
struct GroupNorm {
  float mean[kMaxGroupChannels];
  float scale[kMaxGroupChannels];
  float shift[kMaxGroupChannels];
};

// Constants of a thread's channels. Relu is bool, or a constant as a type.
template <int kVector, class Relu>
struct ThreadNorm {
  float mean[kVector];
  float scale[kVector];
  float shift[kVector];
  Relu relu;

  __device__ ThreadNorm(const GroupNorm& group, int place, Relu with_relu) : relu(with_relu) {
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      mean[v] = group.mean[place + v];
      scale[v] = group.scale[place + v];
      shift[v] = group.shift[place + v];
    }
  }
  __device__ float Centred(int v, float x) const { return x - mean[v]; }
  // `value`, an output or its gradient, after ReLU; NaN passes through.
  __device__ float Gated(float normalized, float value) const {
    return relu && normalized <= 0 ? 0.0F : value;
  }
  __device__ float Output(int v, float x) const {
    const float normalized = Normalized(v, Centred(v, x));
    return Gated(normalized, normalized);
  }
  __device__ float Gradient(int v, float centred, float dy) const {
    return Gated(Normalized(v, centred), dy);
  }

 private:
  __device__ float Normalized(int v, float centred) const {
    return fmaf(centred, scale[v], shift[v]);
  }
};

}  // namespace thimble
