#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/batch_norm/norm_gradients.cuh"
#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/unit_norm.cuh"

namespace thimble {
namespace {

// Rows, of two or three arrays, that a thread loads before it processes the first.
template <class Storage>
constexpr int kUnitGradRowsAtOnce = RowsAtOnce<Storage>(2);

// Sums of dy and of dy * (x - mean) for each of a thread's channels.
template <int kVector>
struct PackSums {
  double at[2][kVector] = {};
};

template <class Storage, int kVector, class Relu>
__device__ PackSums<kVector> SumRows(const GroupThread& thread, const PackNorm<kVector, Relu>& norm,
                                     const GradientTensors<Storage>& tensors) {
  constexpr int kRows = kUnitGradRowsAtOnce<Storage>;
  PackSums<kVector> sums;
  RowBatch<Storage, kVector, kRows> x;
  RowBatch<Storage, kVector, kRows> dy;
#pragma unroll 1
  for (int64_t row = 0; row < thread.count; row += kRows) {
    x.Read(thread, row, tensors.x);
    dy.Read(thread, row, tensors.dy);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k >= thread.count) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(x.at[k][v]);
        const double gradient = norm.Gradient(v, centred, dy.at[k][v]);
        sums.at[0][v] += gradient;
        sums.at[1][v] = fma(gradient, static_cast<double>(centred), sums.at[1][v]);
      }
    }
  }
  return sums;
}

// Adds up the sums of the lanes of each column, as a fixed tree; lane 0 gets the result. Called by
// all threads.
template <int kVector>
__device__ void AddUpLanes(const GroupBlocks& blocks, int lane, PackSums<kVector>& mine) {
  __shared__ double shared[2 * kVector][kGroupThreads];
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // sums of the previous round may still be read
#pragma unroll
  for (int i = 0; i < 2 * kVector; ++i) shared[i][thread] = mine.at[i / kVector][i % kVector];
  for (int count = blocks.lanes; count > 1;) {
    const int half = (count + 1) / 2;
    __syncthreads();
    if (lane + half < count) {
#pragma unroll
      for (int i = 0; i < 2 * kVector; ++i) {
        shared[i][thread] += shared[i][thread + half * blocks.columns];
      }
    }
    count = half;
  }
  // Lane 0 reads only what it has written itself.
#pragma unroll
  for (int i = 0; i < 2 * kVector; ++i) mine.at[i / kVector][i % kVector] = shared[i][thread];
}

// Stores the sums of a unit's channels and returns those of the unit, weighted by gamma: of dy and
// of dy * (x - mean) / deviation.
template <int kVector, class Storage, class Relu>
__device__ TwoSums SumUnit(const GroupBlocks& blocks, int64_t unit, const UnitNorm& norm,
                           const KnownGroupNorm& known, Relu relu,
                           const GradientTensors<Storage>& tensors, double* partials) {
  TwoSums weighted;
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    PackSums<kVector> sums;
    if (thread.count > 0) {
      const PackNorm<kVector, Relu> pack(norm, known.gamma, known.beta, thread.channel, relu);
      sums = SumRows(thread, pack, tensors);
    }
    AddUpLanes(blocks, thread.lane, sums);
    if (thread.idle || thread.lane != 0) continue;
    double* partial = partials + unit / blocks.groups * 2 * blocks.channels;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      const int64_t channel = thread.channel + v;
      const double gamma = known.gamma[channel];
      const double dgamma = sums.at[1][v] * norm.inverse;
      partial[channel] = sums.at[0][v];
      partial[blocks.channels + channel] = dgamma;
      weighted.first += gamma * sums.at[0][v];
      weighted.second += gamma * dgamma;
    }
  }
  return AddUpBlock(weighted);
}

// dx = scale * dy - offset - (x - mean) * slope, plus other; dx may be x, dy or other, as each
// element is read before it is written.
template <bool kAdd, class Storage, int kVector, class Relu>
__device__ void CombineRows(const GroupThread& thread, const PackNorm<kVector, Relu>& norm,
                            float offset, float slope, const GradientTensors<Storage>& tensors) {
  constexpr int kRows = kUnitGradRowsAtOnce<Storage>;
  RowBatch<Storage, kVector, kRows> x;
  RowBatch<Storage, kVector, kRows> dy;
  RowBatch<Storage, kVector, kRows> other;
#pragma unroll 1
  for (int64_t row = 0; row < thread.count; row += kRows) {
    x.Read(thread, row, tensors.x);
    dy.Read(thread, row, tensors.dy);
    if constexpr (kAdd) other.Read(thread, row, tensors.other);
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k >= thread.count) break;
      float dx[kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(x.at[k][v]);
        const float gradient = norm.Gradient(v, centred, dy.at[k][v]);
        dx[v] = fmaf(-centred, slope, fmaf(norm.scale[v], gradient, -offset));
        if constexpr (kAdd) dx[v] = other.at[k][v] + dx[v];
      }
      StorePack(dx, tensors.dx + thread.Element(row + k));
    }
  }
}

template <int kVector, bool kAdd, class Storage, class Relu>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormGradKernel(GroupBlocks blocks, KnownGroupNorm known, Relu relu,
                        GradientTensors<Storage> tensors, double* partials) {
  WaitForKernelsBefore();
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitNorm norm(known.mean[unit], known.variance[unit], known.epsilon);
    const TwoSums sums = SumUnit<kVector>(blocks, unit, norm, known, relu, tensors, partials);
    const double share = norm.inverse / blocks.count();
    const float offset = static_cast<float>(sums.first * share);
    const float slope = static_cast<float>(sums.second * norm.inverse * share);
    for (int64_t round = 0; round < blocks.rounds; ++round) {
      const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
      if (thread.count == 0) continue;
      const PackNorm<kVector, Relu> pack(norm, known.gamma, known.beta, thread.channel, relu);
      CombineRows<kAdd>(thread, pack, offset, slope, tensors);
    }
  }
}

// A block adds up the samples for this many channels: one cache line.
constexpr int kSumChannels = 32;
constexpr int kSumParts = kGroupThreads / kSumChannels;

// dgamma and dbeta: every kSumParts-th sample in order, then the parts in order.
__global__ void __launch_bounds__(kGroupThreads)
    SumSamplesKernel(GroupBlocks blocks, GradientSums gradients) {
  __shared__ double shared[2][kSumParts][kSumChannels];
  const int column = static_cast<int>(threadIdx.x) % kSumChannels;
  const int part = static_cast<int>(threadIdx.x) / kSumChannels;
  const int64_t channel = int64_t{blockIdx.x} * kSumChannels + column;
  TwoSums sums;
  WaitForKernelsBefore();
  if (channel < blocks.channels) {
#pragma unroll 4
    for (int64_t sample = part; sample < blocks.samples; sample += kSumParts) {
      const double* partial = gradients.partials + sample * 2 * blocks.channels + channel;
      sums.first += partial[0];
      sums.second += partial[blocks.channels];
    }
  }
  shared[0][part][column] = sums.first;
  shared[1][part][column] = sums.second;
  __syncthreads();
  if (part != 0 || channel >= blocks.channels) return;
  TwoSums all;
#pragma unroll
  for (int p = 0; p < kSumParts; ++p) {
    all.first += shared[0][p][column];
    all.second += shared[1][p][column];
  }
  gradients.dbeta[channel] = static_cast<float>(all.first);
  gradients.dgamma[channel] = static_cast<float>(all.second);
}

// Two launches: each block sums its unit and then combines; then the sums over all samples.
template <bool kAdd>
void LaunchGroupNormGrad(cudaStream_t stream, const GroupBlocks& blocks, const KnownGroupNorm& norm,
                         const GradientTensors<AnyNumber>& any, const GradientSums& gradients) {
  if (blocks.channels == 0) return;
  if (blocks.units() > 0) {
    WithConstants(TypesOf(any), blocks.vector, norm.relu,
                  [&](auto storage, auto vector, auto relu) {
                    const auto tensors = As<decltype(storage)>(any);
                    GroupNormGradKernel<decltype(vector)::value, kAdd>
                        <<<NumBlocks(blocks), kGroupThreads, 0, stream>>>(
                            blocks, norm, relu, tensors, gradients.partials);
                    THIMBLE_CUDA_LAUNCHED();
                  });
  }
  const int64_t grid = (blocks.channels - 1) / kSumChannels + 1;
  SumSamplesKernel<<<static_cast<unsigned>(grid), kGroupThreads, 0, stream>>>(blocks, gradients);
  THIMBLE_CUDA_LAUNCHED();
}

// group_norm_grad, and with `other` group_norm_grad_add.
template <bool kAdd>
void RunGrad(const KernelCall& call, ConstNumbers other) {
  LaunchGroupNormGrad<kAdd>(call.stream, GroupBlocksFor(call.in_shape(0), call.attributes),
                            KnownNormOf(call), GradientTensorsOf(call, other),
                            GradientSumsOf(call));
}

}  // namespace

size_t GroupNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GroupBlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void GroupNormGradCuda::Run(const KernelCall& call) { RunGrad<false>(call, {}); }

size_t GroupNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GroupNormGradCuda::ScratchBytes(call, limits);
}

void GroupNormGradAddCuda::Run(const KernelCall& call) {
  RunGrad<true>(call, ConstNumbersOf(call.inputs[6]));
}

}  // namespace thimble
