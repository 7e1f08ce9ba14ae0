#include "thimble/device/cuda/check.h"
#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/unit_norm.cuh"

namespace thimble {
namespace {

struct GroupNormArrays {
  const float* x;
  const float* gamma;
  const float* beta;
  float* y;
  float* mean;
  float* variance;
};

// Rows that a thread loads before it processes the first.
constexpr int kUnitRowsAtOnce = 4;

struct UnitStatistics {
  float mean;
  float variance;
};

// Mean and variance of a unit. Sums of x - guess and of its square are in doubles, because the
// guess, the first element, may be far from the mean: at most by sqrt(count) standard deviations,
// as it is one of them, so that the variance loses log2(count) of 53 bits in the worst case.
template <int kVector>
__device__ UnitStatistics MeasureUnit(const GroupBlocks& blocks, int64_t unit, const float* x) {
  const float guess = blocks.empty() ? 0.0F : x[GroupThread(blocks, unit, 0, 0).first];
  TwoSums sums;
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    UnitRows<kVector, kUnitRowsAtOnce> rows;
#pragma unroll 1
    for (int64_t row = 0; row < thread.count; row += kUnitRowsAtOnce) {
      rows.Read(thread, row, x);
#pragma unroll
      for (int k = 0; k < kUnitRowsAtOnce; ++k) {
        if (row + k >= thread.count) break;
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          const double distance = static_cast<double>(rows.at[k].at[v]) - guess;
          sums.first += distance;
          sums.second = fma(distance, distance, sums.second);
        }
      }
    }
  }
  sums = AddUpBlock(sums);
  const double distance = sums.first / blocks.count();
  double squares = sums.second - sums.first * distance;
  // Rounding can give a tiny negative number if all values are equal; NaN must stay.
  if (squares < 0) squares = 0;
  return {static_cast<float>(guess + distance), static_cast<float>(squares / blocks.count())};
}

// y may be x, as each element is read before it is written.
template <int kVector, bool kRelu>
__device__ void NormalizeUnit(const GroupBlocks& blocks, int64_t unit, const UnitNorm& norm,
                              const float* gamma, const float* beta, const float* x, float* y) {
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    if (thread.count == 0) continue;
    const PackNorm<kVector, kRelu> pack(norm, gamma, beta, thread.channel);
    UnitRows<kVector, kUnitRowsAtOnce> rows;
#pragma unroll 1
    for (int64_t row = 0; row < thread.count; row += kUnitRowsAtOnce) {
      rows.Read(thread, row, x);
#pragma unroll
      for (int k = 0; k < kUnitRowsAtOnce; ++k) {
        if (row + k >= thread.count) break;
        Pack<kVector> output;
#pragma unroll
        for (int v = 0; v < kVector; ++v) output.at[v] = pack.Output(v, rows.at[k].at[v]);
        Store<kVector>(y + thread.Element(row + k), output);
      }
    }
  }
}

template <int kVector, bool kRelu>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormKernel(GroupBlocks blocks, GroupNormArrays arrays, double epsilon) {
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitStatistics statistics = MeasureUnit<kVector>(blocks, unit, arrays.x);
    if (threadIdx.x == 0) {
      arrays.mean[unit] = statistics.mean;
      arrays.variance[unit] = statistics.variance;
    }
    NormalizeUnit<kVector, kRelu>(blocks, unit,
                                  UnitNorm(statistics.mean, statistics.variance, epsilon),
                                  arrays.gamma, arrays.beta, arrays.x, arrays.y);
  }
}

template <int kVector, bool kRelu>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormApplyKernel(GroupBlocks blocks, KnownGroupNorm known, const float* x, float* y) {
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitNorm norm(known.mean[unit], known.variance[unit], known.epsilon);
    NormalizeUnit<kVector, kRelu>(blocks, unit, norm, known.gamma, known.beta, x, y);
  }
}

}  // namespace

// One launch: each block measures its unit, then normalizes it.
void GroupNormCuda::Run(const KernelCall& call) {
  const GroupBlocks blocks = GroupBlocksFor(call.in_shape(0), call.attributes);
  if (blocks.units() == 0) return;
  const GroupNormArrays arrays{.x = call.In<float>(0),
                               .gamma = call.In<float>(1),
                               .beta = call.In<float>(2),
                               .y = call.Out<float>(0),
                               .mean = call.Out<float>(1),
                               .variance = call.Out<float>(2)};
  const double epsilon = call.attributes.Float("epsilon");
  WithUnitConstants(blocks.vector, call.attributes.Int("relu") != 0, [&](auto vector, auto relu) {
    GroupNormKernel<decltype(vector)::value, decltype(relu)::value>
        <<<NumBlocks(blocks), kGroupThreads, 0, call.stream>>>(blocks, arrays, epsilon);
    THIMBLE_CUDA_LAUNCHED();
  });
}

void GroupNormApplyCuda::Run(const KernelCall& call) {
  const GroupBlocks blocks = GroupBlocksFor(call.in_shape(0), call.attributes);
  if (blocks.units() == 0 || blocks.empty()) return;
  const KnownGroupNorm norm = KnownNormOf(call);
  WithUnitConstants(blocks.vector, norm.relu, [&](auto vector, auto relu) {
    GroupNormApplyKernel<decltype(vector)::value, decltype(relu)::value>
        <<<NumBlocks(blocks), kGroupThreads, 0, call.stream>>>(blocks, norm, call.In<float>(0),
                                                               call.Out<float>(0));
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace thimble
