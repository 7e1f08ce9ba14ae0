#include <array>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/group_norm/group_norm.h"
#include "thimble/ops/group_norm/unit_norm.cuh"

namespace thimble {
namespace {

template <class Storage>
struct GroupNormTensors {
  InNumbers<Storage> x;
  OutNumbers<Storage> y;
};

// Rows that a thread loads before it processes the first.
template <class Storage>
constexpr int kUnitRowsAtOnce = RowsAtOnce<Storage>(4);

struct UnitStatistics {
  float mean;
  float variance;
};

// Mean and variance of a unit. Sums of x - guess and of its square are in doubles, because the
// guess, the first element, may be far from the mean: at most by sqrt(count) standard deviations,
// as it is one of them, so that the variance loses log2(count) of 53 bits in the worst case.
template <int kVector, class Storage>
__device__ UnitStatistics MeasureUnit(const GroupBlocks& blocks, int64_t unit,
                                      const GroupNormTensors<Storage>& tensors) {
  constexpr int kRows = kUnitRowsAtOnce<Storage>;
  const InNumbers<Storage> x = tensors.x;
  const float guess = blocks.empty() ? 0.0F : LoadNumber(x + GroupThread(blocks, unit, 0, 0).first);
  TwoSums sums;
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    RowBatch<Storage, kVector, kRows> rows;
#pragma unroll 1
    for (int64_t row = 0; row < thread.count; row += kRows) {
      rows.Read(thread, row, x);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (row + k >= thread.count) break;
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          const double distance = static_cast<double>(rows.at[k][v]) - guess;
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
template <int kVector, class Storage, class Relu>
__device__ void NormalizeUnit(const GroupBlocks& blocks, int64_t unit, const UnitNorm& norm,
                              const float* gamma, const float* beta, Relu relu,
                              const GroupNormTensors<Storage>& tensors) {
  constexpr int kRows = kUnitRowsAtOnce<Storage>;
  for (int64_t round = 0; round < blocks.rounds; ++round) {
    const GroupThread thread(blocks, unit, round, static_cast<int>(threadIdx.x));
    if (thread.count == 0) continue;
    const PackNorm<kVector, Relu> pack(norm, gamma, beta, thread.channel, relu);
    RowBatch<Storage, kVector, kRows> rows;
#pragma unroll 1
    for (int64_t row = 0; row < thread.count; row += kRows) {
      rows.Read(thread, row, tensors.x);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (row + k >= thread.count) break;
        float output[kVector];
#pragma unroll
        for (int v = 0; v < kVector; ++v) output[v] = pack.Output(v, rows.at[k][v]);
        StorePack(output, tensors.y + thread.Element(row + k));
      }
    }
  }
}

// The results that are floats.
struct GroupNormStatistics {
  float* mean;
  float* variance;
};

template <int kVector, class Storage, class Relu>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormKernel(GroupBlocks blocks, GroupNormTensors<Storage> tensors, const float* gamma,
                    const float* beta, double epsilon, Relu relu, GroupNormStatistics stored) {
  WaitForKernelsBefore();
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitStatistics statistics = MeasureUnit<kVector>(blocks, unit, tensors);
    if (threadIdx.x == 0) {
      stored.mean[unit] = statistics.mean;
      stored.variance[unit] = statistics.variance;
    }
    const UnitNorm norm(statistics.mean, statistics.variance, epsilon);
    NormalizeUnit<kVector>(blocks, unit, norm, gamma, beta, relu, tensors);
  }
}

template <int kVector, class Storage, class Relu>
__global__ void __launch_bounds__(kGroupThreads)
    GroupNormApplyKernel(GroupBlocks blocks, GroupNormTensors<Storage> tensors,
                         KnownGroupNorm known, Relu relu) {
  WaitForKernelsBefore();
  for (int64_t unit = blockIdx.x; unit < blocks.units(); unit += gridDim.x) {
    const UnitNorm norm(known.mean[unit], known.variance[unit], known.epsilon);
    NormalizeUnit<kVector>(blocks, unit, norm, known.gamma, known.beta, relu, tensors);
  }
}

// Calls launch(tensors, vector, relu) for x and y of a call.
template <class Launch>
void WithGroupNormTensors(const KernelCall& call, const GroupBlocks& blocks, const Launch& launch) {
  const std::array types{call.inputs[0].dtype, call.outputs[0].dtype};
  const bool with_relu = call.attributes.Int("relu") != 0;
  WithConstants(types, blocks.vector, with_relu, [&](auto storage, auto vector, auto relu) {
    using Storage = decltype(storage);
    const GroupNormTensors<Storage> tensors{As<Storage>(ConstNumbersOf(call.inputs[0])),
                                            As<Storage>(NumbersOf(call.outputs[0]))};
    launch(tensors, vector, relu);
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace

// One launch: each block measures its unit, then normalizes it.
void GroupNormCuda::Run(const KernelCall& call) {
  const GroupBlocks blocks = GroupBlocksFor(call.in_shape(0), call.attributes);
  if (blocks.units() == 0) return;
  const GroupNormStatistics stored{call.Out<float>(1), call.Out<float>(2)};
  const double epsilon = call.attributes.Float("epsilon");
  WithGroupNormTensors(call, blocks, [&](const auto& tensors, auto vector, auto relu) {
    GroupNormKernel<decltype(vector)::value><<<NumBlocks(blocks), kGroupThreads, 0, call.stream>>>(
        blocks, tensors, call.In<float>(1), call.In<float>(2), epsilon, relu, stored);
  });
}

void GroupNormApplyCuda::Run(const KernelCall& call) {
  const GroupBlocks blocks = GroupBlocksFor(call.in_shape(0), call.attributes);
  if (blocks.units() == 0 || blocks.empty()) return;
  const KnownGroupNorm norm = KnownNormOf(call);
  WithGroupNormTensors(call, blocks, [&](const auto& tensors, auto vector, auto relu) {
    GroupNormApplyKernel<decltype(vector)::value>
        <<<NumBlocks(blocks), kGroupThreads, 0, call.stream>>>(blocks, tensors, norm, relu);
  });
}

}  // namespace thimble
