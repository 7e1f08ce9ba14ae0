#include "thimble/ops/batch_norm/batch_norm_cpu.h"

#include <algorithm>
#include <cmath>

#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {
namespace {

// Scratch: the partial sums, two doubles and three floats for each channel.
size_t BatchNormScratchBytes(const Shape& x) {
  const ChannelRows rows(x);
  return (rows.num_partials() + 2 * rows.channels) * sizeof(double) +
         3 * rows.channels * sizeof(float);
}

struct BatchNormScratch {
  BatchNormScratch(const KernelCall& call, const ChannelRows& rows)
      : partials(reinterpret_cast<double*>(call.scratch.data())),
        first_sum(partials + rows.num_partials()),
        second_sum(first_sum + rows.channels),
        slope(reinterpret_cast<float*>(second_sum + rows.channels)),
        scale(slope + rows.channels),
        shift(scale + rows.channels) {}

  double* partials;
  double* first_sum;   // (C)
  double* second_sum;  // (C)
  float* slope;        // (C); only backward
  float* scale;        // (C)
  float* shift;        // (C); last, as both directions use it
};

}  // namespace

size_t BatchNormCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BatchNormScratchBytes(call.inputs[0]);
}

void BatchNormCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  const BatchNormScratch scratch(call, rows);
  const float* x = call.In<float>(0);
  const float* gamma = call.In<float>(1);
  const float* beta = call.In<float>(2);
  float* mean = call.Out<float>(1);
  float* variance = call.Out<float>(2);
  const double epsilon = call.attributes.Float("epsilon");
  const double count = static_cast<double>(std::max<size_t>(1, rows.rows));

  MeasureChannels(call.pool, rows, x, scratch.partials, scratch.first_sum, scratch.second_sum);
  for (size_t c = 0; c < rows.channels; ++c) {
    const double exact_mean = scratch.first_sum[c];
    const double exact_variance = scratch.second_sum[c] / count;
    mean[c] = static_cast<float>(exact_mean);
    variance[c] = static_cast<float>(exact_variance);
    const double scale = gamma[c] / std::sqrt(exact_variance + epsilon);
    scratch.scale[c] = static_cast<float>(scale);
    // What rounding took from the mean goes into the shift: it matters where the mean is large.
    const double lost = exact_mean - static_cast<double>(mean[c]);
    scratch.shift[c] = static_cast<float>(beta[c] - lost * scale);
  }
  NormalizeChannels(call.pool, rows, x, mean, scratch.scale, scratch.shift, call.Out<float>(0));
}

size_t BatchNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BatchNormScratchBytes(call.inputs[0]);
}

void BatchNormGradCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  const BatchNormScratch scratch(call, rows);
  const float* x = call.In<float>(0);
  const float* gamma = call.In<float>(1);
  const float* mean = call.In<float>(2);
  const float* variance = call.In<float>(3);
  const float* dy = call.In<float>(4);
  float* dgamma = call.Out<float>(1);
  float* dbeta = call.Out<float>(2);
  const double epsilon = call.attributes.Float("epsilon");
  const double count = static_cast<double>(std::max<size_t>(1, rows.rows));

  SumChannelGradients(call.pool, rows, x, mean, dy, scratch.partials, scratch.first_sum,
                      scratch.second_sum);
  for (size_t c = 0; c < rows.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(variance[c] + epsilon);
    const double exact_dgamma = scratch.second_sum[c] * inverse;
    dgamma[c] = static_cast<float>(exact_dgamma);
    dbeta[c] = static_cast<float>(scratch.first_sum[c]);
    scratch.scale[c] = static_cast<float>(gamma[c] * inverse);
    scratch.shift[c] = static_cast<float>(scratch.first_sum[c] / count);
    scratch.slope[c] = static_cast<float>(exact_dgamma * inverse / count);
  }
  CombineChannelGradients(call.pool, rows, x, mean, dy, scratch.scale, scratch.shift, scratch.slope,
                          call.Out<float>(0));
}

}  // namespace thimble
