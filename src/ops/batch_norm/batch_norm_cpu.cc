#include <algorithm>
#include <cmath>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/channel_passes.h"

namespace thimble {
namespace {

double Count(const RowChunks& part) { return static_cast<double>(std::max<size_t>(1, part.rows)); }

// The partial sums, then two doubles for each statistic, then floats.
struct SumScratch {
  SumScratch(std::span<std::byte> scratch, const ChannelRows& rows)
      : partials(reinterpret_cast<double*>(scratch.data())),
        first(partials + rows.num_partials()),
        second(first + rows.num_statistics()),
        floats(reinterpret_cast<float*>(second + rows.num_statistics())) {}

  static size_t SizeBytes(const ChannelRows& rows, size_t floats_per_statistic) {
    return (rows.num_partials() + 2 * rows.num_statistics()) * sizeof(double) +
           floats_per_statistic * rows.num_statistics() * sizeof(float);
  }

  double* partials;
  double* first;   // (parts, C)
  double* second;  // (parts, C)
  float* floats;
};

// Calls body(count of a part's rows, statistic, channel) for each statistic.
template <class Body>
void ForEachStatistic(ThreadPool& pool, const ChannelRows& rows, const Body& body) {
  pool.Run(rows.num_parts, [&](size_t part, size_t /*thread*/) {
    const double count = Count(rows.part(part));
    for (size_t c = 0; c < rows.channels; ++c) body(count, part * rows.channels + c, c);
  });
}

// The sum over the parts, in their order. from: (parts, C); to: (C).
void AddUpParts(const ChannelRows& rows, const double* from, float* to) {
  for (size_t c = 0; c < rows.channels; ++c) {
    double sum = 0;
    for (size_t s = c; s < rows.num_statistics(); s += rows.channels) sum += from[s];
    to[c] = static_cast<float>(sum);
  }
}

// batch_norm_grad, and with `other` batch_norm_grad_add.
void RunGrad(const KernelCall& call, ConstNumbers other) {
  const ChannelRows rows(call.in_shape(0), call.attributes);
  const SumScratch scratch(call.scratch, rows);
  float* scale = scratch.floats;
  float* offset = scale + rows.num_statistics();
  float* slope = offset + rows.num_statistics();
  const ConstNumbers x = ConstNumbersOf(call.inputs[0]);
  const float* gamma = call.In<float>(1);
  const float* variance = call.In<float>(4);
  const ConstNumbers dy = ConstNumbersOf(call.inputs[5]);
  const double epsilon = call.attributes.Float("epsilon");
  ForEachStatistic(call.pool, rows, [&](double /*count*/, size_t s, size_t c) {
    scale[s] = ChannelScale(gamma[c], variance[s], epsilon);
  });
  const ChannelNorm norm{call.In<float>(3), scale, call.In<float>(2),
                         call.attributes.Int("relu") != 0};

  SumChannelGradients(call.pool, rows, norm, x, dy, scratch.partials, scratch.first,
                      scratch.second);
  ForEachStatistic(call.pool, rows, [&](double count, size_t s, size_t /*channel*/) {
    const double inverse = 1.0 / std::sqrt(variance[s] + epsilon);
    scratch.second[s] *= inverse;
    offset[s] = static_cast<float>(scratch.first[s] / count);
    slope[s] = static_cast<float>(scratch.second[s] * inverse / count);
  });
  AddUpParts(rows, scratch.second, call.Out<float>(1));
  AddUpParts(rows, scratch.first, call.Out<float>(2));
  CombineChannelGradients(call.pool, rows, norm, x, dy, offset, slope, other,
                          NumbersOf(call.outputs[0]));
}

}  // namespace

// One float for each statistic: scale.
size_t BatchNormCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SumScratch::SizeBytes(ChannelRows(call.inputs[0], call.attributes), 1);
}

void BatchNormCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0), call.attributes);
  const SumScratch scratch(call.scratch, rows);
  float* scale = scratch.floats;
  const ConstNumbers x = ConstNumbersOf(call.inputs[0]);
  const float* gamma = call.In<float>(1);
  float* mean = call.Out<float>(1);
  float* variance = call.Out<float>(2);
  const double epsilon = call.attributes.Float("epsilon");

  MeasureChannels(call.pool, rows, x, scratch.partials, scratch.first, scratch.second);
  // Elements are normalized with the statistics as stored, so that the backward pass can recompute
  // the same bits from them.
  ForEachStatistic(call.pool, rows, [&](double count, size_t s, size_t c) {
    mean[s] = static_cast<float>(scratch.first[s]);
    variance[s] = static_cast<float>(scratch.second[s] / count);
    scale[s] = ChannelScale(gamma[c], variance[s], epsilon);
  });
  NormalizeChannels(call.pool, rows,
                    {mean, scale, call.In<float>(2), call.attributes.Int("relu") != 0}, x,
                    NumbersOf(call.outputs[0]));
}

// Three floats for each statistic: scale, offset, slope.
size_t BatchNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SumScratch::SizeBytes(ChannelRows(call.inputs[0], call.attributes), 3);
}

void BatchNormGradCpu::Run(const KernelCall& call) { RunGrad(call, {}); }

size_t BatchNormGradAddCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCpu::ScratchBytes(call, limits);
}

void BatchNormGradAddCpu::Run(const KernelCall& call) {
  RunGrad(call, ConstNumbersOf(call.inputs[6]));
}

}  // namespace thimble
