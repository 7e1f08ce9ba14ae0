#include "thimble/ops/batch_norm/batch_norm_cpu.h"

#include <algorithm>
#include <cmath>

#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {
namespace {

double Count(const ChannelRows& rows) {
  return static_cast<double>(std::max<size_t>(1, rows.rows));
}

// The partial sums, and two doubles for each channel; behind them floats.
struct SumScratch {
  SumScratch(std::span<std::byte> scratch, const ChannelRows& rows)
      : partials(reinterpret_cast<double*>(scratch.data())),
        first(partials + rows.num_partials()),
        second(first + rows.channels),
        floats(reinterpret_cast<float*>(second + rows.channels)) {}

  static size_t SizeBytes(const ChannelRows& rows, size_t floats_per_channel) {
    return (rows.num_partials() + 2 * rows.channels) * sizeof(double) +
           floats_per_channel * rows.channels * sizeof(float);
  }

  double* partials;
  double* first;   // (C)
  double* second;  // (C)
  float* floats;
};

// batch_norm_grad, and with `other` batch_norm_grad_add.
void RunGrad(const KernelCall& call, const float* other) {
  const ChannelRows rows(call.in_shape(0));
  const SumScratch scratch(call.scratch, rows);
  float* scale = scratch.floats;
  float* offset = scale + rows.channels;
  float* slope = offset + rows.channels;
  const float* x = call.In<float>(0);
  const float* gamma = call.In<float>(1);
  const float* variance = call.In<float>(4);
  const float* dy = call.In<float>(5);
  const double epsilon = call.attributes.Float("epsilon");
  for (size_t c = 0; c < rows.channels; ++c) {
    scale[c] = ChannelScale(gamma[c], variance[c], epsilon);
  }
  const ChannelNorm norm{call.In<float>(3), scale, call.In<float>(2),
                         call.attributes.Int("relu") != 0};

  SumChannelGradients(call.pool, rows, norm, x, dy, scratch.partials, scratch.first,
                      scratch.second);
  for (size_t c = 0; c < rows.channels; ++c) {
    const double inverse = 1.0 / std::sqrt(variance[c] + epsilon);
    const double dgamma = scratch.second[c] * inverse;
    call.Out<float>(1)[c] = static_cast<float>(dgamma);
    call.Out<float>(2)[c] = static_cast<float>(scratch.first[c]);
    offset[c] = static_cast<float>(scratch.first[c] / Count(rows));
    slope[c] = static_cast<float>(dgamma * inverse / Count(rows));
  }
  CombineChannelGradients(call.pool, rows, norm, x, dy, offset, slope, other, call.Out<float>(0));
}

}  // namespace

// One float for each channel: scale.
size_t BatchNormCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SumScratch::SizeBytes(ChannelRows(call.inputs[0]), 1);
}

void BatchNormCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0));
  const SumScratch scratch(call.scratch, rows);
  float* scale = scratch.floats;
  const float* x = call.In<float>(0);
  float* mean = call.Out<float>(1);
  float* variance = call.Out<float>(2);

  MeasureChannels(call.pool, rows, x, scratch.partials, scratch.first, scratch.second);
  // Elements are normalized by the statistics as they are stored, so that whoever has those can
  // compute the same bits again: backward does.
  for (size_t c = 0; c < rows.channels; ++c) {
    mean[c] = static_cast<float>(scratch.first[c]);
    variance[c] = static_cast<float>(scratch.second[c] / Count(rows));
    scale[c] = ChannelScale(call.In<float>(1)[c], variance[c], call.attributes.Float("epsilon"));
  }
  NormalizeChannels(call.pool, rows,
                    {mean, scale, call.In<float>(2), call.attributes.Int("relu") != 0}, x,
                    call.Out<float>(0));
}

// Three floats for each channel: scale, offset, slope.
size_t BatchNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SumScratch::SizeBytes(ChannelRows(call.inputs[0]), 3);
}

void BatchNormGradCpu::Run(const KernelCall& call) { RunGrad(call, nullptr); }

size_t BatchNormGradAddCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCpu::ScratchBytes(call, limits);
}

void BatchNormGradAddCpu::Run(const KernelCall& call) { RunGrad(call, call.In<float>(6)); }

}  // namespace thimble
