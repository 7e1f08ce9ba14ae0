#include "thimble/device/cuda/check.h"
#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/unit_norm.cuh"

namespace thimble {
namespace {

struct GroupNormGradArrays {
  const float* x;
  const float* dy;
  const float* other;  // null, or added to dx
  double* partials;    // scratch: blocks.num_partials()
  float* dx;
  float* dgamma;
  float* dbeta;
};

// Rows, of two or three arrays, that a thread loads before it processes the first.
constexpr int kUnitGradRowsAtOnce = 2;

// Sums of dy and of dy * (x - mean) for each of a thread's channels.
template <int kVector>
struct PackSums {
  double at[2][kVector] = {};
};

template <int kVector, bool kRelu>
__device__ PackSums<kVector> SumRows(const GroupThread& thread,
                                     const PackNorm<kVector, kRelu>& norm, const float* x,
                                     const float* dy) {
  PackSums<kVector> sums;
  UnitRows<kVector, kUnitGradRowsAtOnce> x_rows;
  UnitRows<kVector, kUnitGradRowsAtOnce> dy_rows;
#pragma unroll 1
  for (int64_t row = 0; row < thread.count; row += kUnitGradRowsAtOnce) {
    x_rows.Read(thread, row, x);
    dy_rows.Read(thread, row, dy);
#pragma unroll
    for (int k = 0; k < kUnitGradRowsAtOnce; ++k) {
      if (row + k >= thread.count) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(x_rows.at[k].at[v]);
        const double gradient = norm.Gradient(v, centred, dy_rows.at[k].at[v]);
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
template <int kVector, bool kRelu>
__device__ TwoSums SumUnit(const GroupBlocks& blocks, int64_t unit, const UnitNorm& norm,
                           const KnownGroupNorm& known, const GroupNormGradArrays& arrays) {
  TwoSums weighted;
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    PackSums<kVector> sums;
    if (thread.count > 0) {
      const PackNorm<kVector, kRelu> pack(norm, known.gamma, known.beta, thread.channel);
      sums = SumRows(thread, pack, arrays.x, arrays.dy);
    }
    AddUpLanes(blocks, thread.lane, sums);
    if (thread.idle || thread.lane != 0) continue;
    double* partial = arrays.partials + unit / blocks.groups * 2 * blocks.channels;
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
template <int kVector, bool kRelu, bool kAdd>
__device__ void CombineRows(const GroupThread& thread, const PackNorm<kVector, kRelu>& norm,
                            float offset, float slope, const GroupNormGradArrays& arrays) {
  UnitRows<kVector, kUnitGradRowsAtOnce> x;
  UnitRows<kVector, kUnitGradRowsAtOnce> dy;
  UnitRows<kVector, kUnitGradRowsAtOnce> other;
#pragma unroll 1
  for (int64_t row = 0; row < thread.count; row += kUnitGradRowsAtOnce) {
    x.Read(thread, row, arrays.x);
    dy.Read(thread, row, arrays.dy);
    if constexpr (kAdd) other.Read(thread, row, arrays.other);
#pragma unroll
    for (int k = 0; k < kUnitGradRowsAtOnce; ++k) {
      if (row + k >= thread.count) break;
      Pack<kVector> dx;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(x.at[k].at[v]);
        const float gradient = norm.Gradient(v, centred, dy.at[k].at[v]);
        dx.at[v] = fmaf(-centred, slope, fmaf(norm.scale[v], gradient, -offset));
        if constexpr (kAdd) dx.at[v] = other.at[k].at[v] + dx.at[v];
      }
      Store<kVector>(arrays.dx + thread.Element(row + k), dx);
    }
  }
}

template <int kVector, bool kRelu, bool kAdd>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormGradKernel(GroupBlocks blocks, KnownGroupNorm known, GroupNormGradArrays arrays) {
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitNorm norm(known.mean[unit], known.variance[unit], known.epsilon);
    const TwoSums sums = SumUnit<kVector, kRelu>(blocks, unit, norm, known, arrays);
    const double share = norm.inverse / blocks.count();
    const float offset = static_cast<float>(sums.first * share);
    const float slope = static_cast<float>(sums.second * norm.inverse * share);
    for (int64_t round = 0; round < blocks.rounds; ++round) {
      const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
      if (thread.count == 0) continue;
      const PackNorm<kVector, kRelu> pack(norm, known.gamma, known.beta, thread.channel);
      CombineRows<kVector, kRelu, kAdd>(thread, pack, offset, slope, arrays);
    }
  }
}

// A block adds up the samples for this many channels: one cache line.
constexpr int kSumChannels = 32;
constexpr int kSumParts = kGroupThreads / kSumChannels;

// dgamma and dbeta: every kSumParts-th sample in order, then the parts in order.
__global__ void __launch_bounds__(kGroupThreads)
    SumSamplesKernel(GroupBlocks blocks, GroupNormGradArrays arrays) {
  __shared__ double shared[2][kSumParts][kSumChannels];
  const int column = static_cast<int>(threadIdx.x) % kSumChannels;
  const int part = static_cast<int>(threadIdx.x) / kSumChannels;
  const int64_t channel = int64_t{blockIdx.x} * kSumChannels + column;
  TwoSums sums;
  if (channel < blocks.channels) {
#pragma unroll 4
    for (int64_t sample = part; sample < blocks.samples; sample += kSumParts) {
      const double* partial = arrays.partials + sample * 2 * blocks.channels + channel;
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
  arrays.dbeta[channel] = static_cast<float>(all.first);
  arrays.dgamma[channel] = static_cast<float>(all.second);
}

// Two launches: each block sums its unit and then combines; then the sums over all samples.
void LaunchGroupNormGrad(cudaStream_t stream, const GroupBlocks& blocks, const KnownGroupNorm& norm,
                         const GroupNormGradArrays& arrays) {
  if (blocks.channels == 0) return;
  if (blocks.units() > 0) {
    WithUnitConstants(blocks.vector, norm.relu, [&](auto vector, auto with_relu) {
      constexpr int kVector = decltype(vector)::value;
      constexpr bool kRelu = decltype(with_relu)::value;
      const unsigned grid = NumBlocks(blocks);
      if (arrays.other != nullptr) {
        GroupNormGradKernel<kVector, kRelu, true>
            <<<grid, kGroupThreads, 0, stream>>>(blocks, norm, arrays);
      } else {
        GroupNormGradKernel<kVector, kRelu, false>
            <<<grid, kGroupThreads, 0, stream>>>(blocks, norm, arrays);
      }
      THIMBLE_CUDA_LAUNCHED();
    });
  }
  const int64_t grid = (blocks.channels - 1) / kSumChannels + 1;
  SumSamplesKernel<<<static_cast<unsigned>(grid), kGroupThreads, 0, stream>>>(blocks, arrays);
  THIMBLE_CUDA_LAUNCHED();
}

// group_norm_grad, and with `other` group_norm_grad_add.
void RunGrad(const KernelCall& call, const float* other) {
  LaunchGroupNormGrad(call.stream, GroupBlocksFor(call.in_shape(0), call.attributes),
                      KnownNormOf(call),
                      {.x = call.In<float>(0),
                       .dy = call.In<float>(5),
                       .other = other,
                       .partials = reinterpret_cast<double*>(call.scratch.data()),
                       .dx = call.Out<float>(0),
                       .dgamma = call.Out<float>(1),
                       .dbeta = call.Out<float>(2)});
}

}  // namespace

size_t GroupNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return GroupBlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void GroupNormGradCuda::Run(const KernelCall& call) { RunGrad(call, nullptr); }

size_t GroupNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GroupNormGradCuda::ScratchBytes(call, limits);
}

void GroupNormGradAddCuda::Run(const KernelCall& call) { RunGrad(call, call.In<float>(6)); }

}  // namespace thimble
