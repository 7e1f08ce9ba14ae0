#include <cmath>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/batch_norm/channel_passes.h"
#include "thimble/ops/batch_norm_eval/batch_norm_eval.h"

namespace thimble {
namespace {

// The inputs of both directions begin with x, gamma, beta, running_mean, running_variance. Fills
// `scale` (parts, C).
ChannelNorm MakeNorm(const KernelCall& call, const ChannelRows& rows, float* scale) {
  const float* gamma = call.In<float>(1);
  const float* variance = call.In<float>(4);
  const double epsilon = call.attributes.Float("epsilon");
  call.pool.Run(rows.num_parts, [&](size_t part, size_t /*thread*/) {
    const size_t first = part * rows.channels;
    for (size_t c = 0; c < rows.channels; ++c) {
      scale[first + c] = ChannelScale(gamma[c], variance[first + c], epsilon);
    }
  });
  return {call.In<float>(3), scale, call.In<float>(2), call.attributes.Int("relu") != 0};
}

}  // namespace

// Scratch: one scale for each statistic.
size_t BatchNormEvalCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return ChannelRows(call.inputs[0], call.attributes).num_statistics() * sizeof(float);
}

void BatchNormEvalCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0), call.attributes);
  const ChannelNorm norm = MakeNorm(call, rows, reinterpret_cast<float*>(call.scratch.data()));
  NormalizeChannels(call.pool, rows, norm, ConstNumbersOf(call.inputs[0]),
                    NumbersOf(call.outputs[0]));
}

// Scratch: the partial sums, two doubles and a scale for each statistic.
size_t BatchNormEvalGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const ChannelRows rows(call.inputs[0], call.attributes);
  return (rows.num_partials() + 2 * rows.num_statistics()) * sizeof(double) +
         rows.num_statistics() * sizeof(float);
}

void BatchNormEvalGradCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0), call.attributes);
  double* partials = reinterpret_cast<double*>(call.scratch.data());
  double* sum_dy = partials + rows.num_partials();
  double* sum_product = sum_dy + rows.num_statistics();
  const ChannelNorm norm =
      MakeNorm(call, rows, reinterpret_cast<float*>(sum_product + rows.num_statistics()));
  const ConstNumbers x = ConstNumbersOf(call.inputs[0]);
  const float* variance = call.In<float>(4);
  const ConstNumbers dy = ConstNumbersOf(call.inputs[5]);
  float* dgammas = call.Out<float>(1);
  float* dbetas = call.Out<float>(2);
  const double epsilon = call.attributes.Float("epsilon");

  SumChannelGradients(call.pool, rows, norm, x, dy, partials, sum_dy, sum_product);
  for (size_t c = 0; c < rows.channels; ++c) {
    double dgamma = 0;
    double dbeta = 0;
    for (size_t s = c; s < rows.num_statistics(); s += rows.channels) {
      dgamma += sum_product[s] / std::sqrt(variance[s] + epsilon);
      dbeta += sum_dy[s];
    }
    dgammas[c] = static_cast<float>(dgamma);
    dbetas[c] = static_cast<float>(dbeta);
  }
  ScaleChannelGradients(call.pool, rows, norm, x, dy, NumbersOf(call.outputs[0]));
}

}  // namespace thimble
