#include "thimble/ops/batch_norm_eval/batch_norm_eval_cpu.h"

#include <algorithm>
#include <cmath>

#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {

// Scratch: one scale for each channel.
size_t BatchNormEvalCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return ChannelRows(call.inputs[0]).channels * sizeof(float);
}

void BatchNormEvalCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  const float* gamma = call.In<float>(1);
  const float* variance = call.In<float>(4);
  const double epsilon = call.attributes.Float("epsilon");
  float* scale = reinterpret_cast<float*>(call.scratch.data());
  for (size_t c = 0; c < rows.channels; ++c) {
    scale[c] = static_cast<float>(gamma[c] / std::sqrt(variance[c] + epsilon));
  }
  NormalizeChannels(call.pool, rows, call.In<float>(0), call.In<float>(3), scale, call.In<float>(2),
                    call.Out<float>(0));
}

// Scratch: the partial sums, two doubles and two floats for each channel.
size_t BatchNormEvalGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const ChannelRows rows(call.inputs[0]);
  return (rows.num_partials() + 2 * rows.channels) * sizeof(double) +
         2 * rows.channels * sizeof(float);
}

void BatchNormEvalGradCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  double* partials = reinterpret_cast<double*>(call.scratch.data());
  double* sum_dy = partials + rows.num_partials();
  double* sum_product = sum_dy + rows.channels;
  float* scale = reinterpret_cast<float*>(sum_product + rows.channels);
  float* zero = scale + rows.channels;
  const float* gamma = call.In<float>(1);
  const float* mean = call.In<float>(2);
  const float* variance = call.In<float>(3);
  const float* dy = call.In<float>(4);
  const double epsilon = call.attributes.Float("epsilon");

  SumChannelGradients(call.pool, rows, call.In<float>(0), mean, dy, partials, sum_dy, sum_product);
  for (size_t c = 0; c < rows.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(variance[c] + epsilon);
    scale[c] = static_cast<float>(gamma[c] * inverse);
    call.Out<float>(1)[c] = static_cast<float>(sum_product[c] * inverse);
    call.Out<float>(2)[c] = static_cast<float>(sum_dy[c]);
  }
  // dx = (dy - 0) * scale + 0.
  std::fill_n(zero, rows.channels, 0.0F);
  NormalizeChannels(call.pool, rows, dy, zero, scale, zero, call.Out<float>(0));
}

}  // namespace thimble
