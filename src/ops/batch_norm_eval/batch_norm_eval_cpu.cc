#include "thimble/ops/batch_norm_eval/batch_norm_eval_cpu.h"

#include <cmath>

#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {
namespace {

// The inputs of both directions begin with x, gamma, beta, running_mean, running_variance. Fills
// `scale`.
ChannelNorm MakeNorm(const KernelCall& call, const ChannelRows& rows, float* scale) {
  for (size_t c = 0; c < rows.channels; ++c) {
    scale[c] =
        ChannelScale(call.In<float>(1)[c], call.In<float>(4)[c], call.attributes.Float("epsilon"));
  }
  return {call.In<float>(3), scale, call.In<float>(2), call.attributes.Int("relu") != 0};
}

}  // namespace

// Scratch: one scale for each channel.
size_t BatchNormEvalCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return ChannelRows(call.inputs[0]).channels * sizeof(float);
}

void BatchNormEvalCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  const ChannelNorm norm = MakeNorm(call, rows, reinterpret_cast<float*>(call.scratch.data()));
  NormalizeChannels(call.pool, rows, norm, call.In<float>(0), call.Out<float>(0));
}

// Scratch: the partial sums, two doubles and a scale for each channel.
size_t BatchNormEvalGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const ChannelRows rows(call.inputs[0]);
  return (rows.num_partials() + 2 * rows.channels) * sizeof(double) + rows.channels * sizeof(float);
}

void BatchNormEvalGradCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  double* partials = reinterpret_cast<double*>(call.scratch.data());
  double* sum_dy = partials + rows.num_partials();
  double* sum_product = sum_dy + rows.channels;
  const ChannelNorm norm =
      MakeNorm(call, rows, reinterpret_cast<float*>(sum_product + rows.channels));
  const float* x = call.In<float>(0);
  const float* variance = call.In<float>(4);
  const float* dy = call.In<float>(5);
  const double epsilon = call.attributes.Float("epsilon");

  SumChannelGradients(call.pool, rows, norm, x, dy, partials, sum_dy, sum_product);
  for (size_t c = 0; c < rows.channels; ++c) {
    call.Out<float>(1)[c] = static_cast<float>(sum_product[c] / std::sqrt(variance[c] + epsilon));
    call.Out<float>(2)[c] = static_cast<float>(sum_dy[c]);
  }
  ScaleChannelGradients(call.pool, rows, norm, x, dy, call.Out<float>(0));
}

}  // namespace thimble
