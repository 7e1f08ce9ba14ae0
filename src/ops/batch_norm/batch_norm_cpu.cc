#include <algorithm>
#include <cmath>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/channel_passes.h"
#include "thimble/ops/batch_norm/norm_gradient.h"

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
  const NormGradient gradient{.rows = rows,
                              .x = ConstNumbersOf(call.inputs[0]),
                              .gamma = call.In<float>(1),
                              .beta = call.In<float>(2),
                              .mean = call.In<float>(3),
                              .variance = call.In<float>(4),
                              .epsilon = call.attributes.Float("epsilon"),
                              .relu = call.attributes.Int("relu") != 0,
                              .other = other,
                              .dx = NumbersOf(call.outputs[0]),
                              .dgamma = call.Out<float>(1),
                              .dbeta = call.Out<float>(2)};
  RunNormGradient(gradient, call.scratch, call.pool, [&](const auto& visit) {
    if (rows.num_chunks > 0) visit({0, rows.num_chunks, ConstNumbersOf(call.inputs[5])});
  });
}

// The statistics as stored; scratch.second has the sums of squares.
void StoreStatistics(const KernelCall& call, const ChannelRows& rows, const SumScratch& scratch,
                     float* mean, float* variance) {
  ForEachStatistic(call.pool, rows, [&](double count, size_t s, size_t /*channel*/) {
    mean[s] = static_cast<float>(scratch.first[s]);
    variance[s] = static_cast<float>(scratch.second[s] / count);
  });
}

}  // namespace

// Three floats for each statistic: scale, offset, slope.
size_t NormGradientScratchBytes(const ChannelRows& rows) { return SumScratch::SizeBytes(rows, 3); }

void RunNormGradient(const NormGradient& gradient, std::span<std::byte> scratch_bytes,
                     ThreadPool& pool,
                     FunctionRef<void(FunctionRef<void(const GradientChunks&)>)> for_each) {
  const ChannelRows& rows = gradient.rows;
  const SumScratch scratch(scratch_bytes, rows);
  float* scale = scratch.floats;
  float* offset = scale + rows.num_statistics();
  float* slope = offset + rows.num_statistics();
  const float* variance = gradient.variance;
  const double epsilon = gradient.epsilon;
  ForEachStatistic(pool, rows, [&](double /*count*/, size_t s, size_t c) {
    scale[s] = ChannelScale(gradient.gamma[c], variance[s], epsilon);
  });
  const ChannelNorm norm{gradient.mean, scale, gradient.beta, gradient.relu};
  for_each([&](const GradientChunks& chunks) {
    SumChunkGradients(pool, rows, norm, gradient.x, chunks, scratch.partials);
  });
  MergeChunkGradients(pool, rows, scratch.partials, scratch.first, scratch.second);
  ForEachStatistic(pool, rows, [&](double count, size_t s, size_t /*channel*/) {
    const double inverse = 1.0 / std::sqrt(variance[s] + epsilon);
    scratch.second[s] *= inverse;
    offset[s] = static_cast<float>(scratch.first[s] / count);
    slope[s] = static_cast<float>(scratch.second[s] * inverse / count);
  });
  AddUpParts(rows, scratch.second, gradient.dgamma);
  AddUpParts(rows, scratch.first, gradient.dbeta);
  for_each([&](const GradientChunks& chunks) {
    CombineChunkGradients(pool, rows, norm, gradient.x, chunks, offset, slope, gradient.other,
                          gradient.dx);
  });
}

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
  StoreStatistics(call, rows, scratch, mean, variance);
  ForEachStatistic(call.pool, rows, [&](double /*count*/, size_t s, size_t c) {
    scale[s] = ChannelScale(gamma[c], variance[s], epsilon);
  });
  NormalizeChannels(call.pool, rows,
                    {mean, scale, call.In<float>(2), call.attributes.Int("relu") != 0}, x,
                    NumbersOf(call.outputs[0]));
}

size_t BatchNormStatisticsCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return SumScratch::SizeBytes(ChannelRows(call.inputs[0], call.attributes), 0);
}

void BatchNormStatisticsCpu::Run(const KernelCall& call) {
  const ChannelRows rows(call.in_shape(0), call.attributes);
  const SumScratch scratch(call.scratch, rows);
  MeasureChannels(call.pool, rows, ConstNumbersOf(call.inputs[0]), scratch.partials, scratch.first,
                  scratch.second);
  StoreStatistics(call, rows, scratch, call.Out<float>(0), call.Out<float>(1));
}

size_t BatchNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return NormGradientScratchBytes(ChannelRows(call.inputs[0], call.attributes));
}

void BatchNormGradCpu::Run(const KernelCall& call) { RunGrad(call, {}); }

size_t BatchNormGradAddCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCpu::ScratchBytes(call, limits);
}

void BatchNormGradAddCpu::Run(const KernelCall& call) {
  RunGrad(call, ConstNumbersOf(call.inputs[6]));
}

}  // namespace thimble
