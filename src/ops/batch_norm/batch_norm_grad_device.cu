#include "thimble/device/cuda/check.h"
#include "thimble/ops/batch_norm/known_norm.cuh"

namespace thimble {
namespace {

// Rows that a thread loads before it works on the first: of two or three arrays.
constexpr int kRowsAtOnce = 2;
// A chain of float additions is this long at most; chains are added up in doubles.
constexpr int kRowsPerChain = 16;

// What dx is made from.
enum class Formula {
  kBatch,     // scale * (dy - offset - (x - mean) * slope)
  kBatchAdd,  // the same plus other
  kEval,      // scale * dy
};

// Adds dy and dy * (x - mean) of the thread's rows [begin, end) to the sums.
template <int kVector, bool kRelu>
__device__ void AddChain(const ThreadRows& rows, const ThreadNorm<kVector, kRelu>& norm,
                         const BatchNormGradArrays& arrays, int begin, int end,
                         ChannelSums<kVector>& sums) {
  float chain[2][kVector] = {};
#pragma unroll 1
  for (int row = begin; row < end; row += kRowsAtOnce) {
    Pack<kVector> x[kRowsAtOnce];
    Pack<kVector> dy[kRowsAtOnce];
    const int64_t first = rows.first + row * rows.step;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= end) break;
      x[k] = Load<kVector>(arrays.x + first + k * rows.step);
      dy[k] = Load<kVector>(arrays.dy + first + k * rows.step);
    }
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= end) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(v, x[k].at[v]);
        const float gradient = norm.Gradient(v, centred, dy[k].at[v]);
        chain[0][v] += gradient;
        chain[1][v] = fmaf(gradient, centred, chain[1][v]);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    sums.sums[0][v] += chain[0][v];
    sums.sums[1][v] += chain[1][v];
  }
}

template <int kVector, bool kRelu>
__global__ void __launch_bounds__(kNormThreads, 2)
    SumGradientsKernel(ChannelBlocks blocks, KnownNorm known, BatchNormGradArrays arrays) {
  __shared__ GroupNorm group;
  LoadGroup(blocks, known, group);
  __syncthreads();
  const ThreadRows rows = RowsOfThisThread(blocks);
  ChannelSums<kVector> sums;
  if (rows.count > 0) {
    const ThreadNorm<kVector, kRelu> norm(group, rows.place);
#pragma unroll 1
    for (int row = 0; row < rows.count; row += kRowsPerChain) {
      AddChain(rows, norm, arrays, row, min(rows.count, row + kRowsPerChain), sums);
    }
  }
  StorePartials(blocks, sums, arrays.partials);
}

// What the batch's own statistics pass on to each element, in shared memory.
struct alignas(16) GroupSlopes {
  float offset[kMaxGroupChannels];
  float slope[kMaxGroupChannels];
};

// Turns the sums of a channel into its gradients and slopes.
__device__ void FinishChannel(const ChannelBlocks& blocks, const KnownNorm& norm,
                              const BatchNormGradArrays& arrays, int place, int64_t channel,
                              const double* sums, GroupSlopes& slopes) {
  const double count = static_cast<double>(blocks.rows == 0 ? 1 : blocks.rows);
  const double inverse = 1.0 / sqrt(norm.variance[channel] + norm.epsilon);
  const double dbeta = sums[place];
  const double dgamma = sums[blocks.group_channels() + place] * inverse;
  slopes.offset[place] = static_cast<float>(dbeta / count);
  slopes.slope[place] = static_cast<float>(dgamma * inverse / count);
  if (blockIdx.y == 0) {
    arrays.dgamma[channel] = static_cast<float>(dgamma);
    arrays.dbeta[channel] = static_cast<float>(dbeta);
  }
}

// dx of one element.
template <Formula kFormula, class Norm>
__device__ float Combine(const Norm& norm, int v, float x, float dy, float other, float offset,
                         float slope) {
  const float centred = norm.Centred(v, x);
  const float gradient = norm.Gradient(v, centred, dy);
  if constexpr (kFormula == Formula::kEval) return norm.scale[v] * gradient;
  const float dx = norm.scale[v] * fmaf(-centred, slope, gradient - offset);
  return kFormula == Formula::kBatchAdd ? other + dx : dx;
}

// dx of the thread's elements; dx may be x, dy or other, as each is read before it is written.
template <Formula kFormula, int kVector, bool kRelu>
__device__ void CombineRows(const ThreadRows& rows, const ThreadNorm<kVector, kRelu>& norm,
                            const GroupSlopes& slopes, const BatchNormGradArrays& arrays) {
  constexpr bool kReadsX = kFormula != Formula::kEval || kRelu;
  constexpr bool kReadsOther = kFormula == Formula::kBatchAdd;
  const auto offset = Load<kVector>(slopes.offset + rows.place);
  const auto slope = Load<kVector>(slopes.slope + rows.place);
#pragma unroll 1
  for (int row = 0; row < rows.count; row += kRowsAtOnce) {
    Pack<kVector> x[kRowsAtOnce];
    Pack<kVector> dy[kRowsAtOnce];
    Pack<kVector> other[kRowsAtOnce];
    const int64_t first = rows.first + row * rows.step;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= rows.count) break;
      const int64_t i = first + k * rows.step;
      x[k] = kReadsX ? Load<kVector>(arrays.x + i) : Pack<kVector>{};
      dy[k] = Load<kVector>(arrays.dy + i);
      other[k] = kReadsOther ? Load<kVector>(arrays.other + i) : Pack<kVector>{};
    }
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= rows.count) break;
      Pack<kVector> dx;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        dx.at[v] = Combine<kFormula>(norm, v, x[k].at[v], dy[k].at[v], other[k].at[v], offset.at[v],
                                     slope.at[v]);
      }
      Store<kVector>(arrays.dx + first + k * rows.step, dx);
    }
  }
}

template <Formula kFormula, int kVector, bool kRelu>
__global__ void __launch_bounds__(kNormThreads, 2)
    CombineGradientsKernel(ChannelBlocks blocks, KnownNorm known, BatchNormGradArrays arrays) {
  __shared__ GroupNorm group;
  __shared__ GroupSlopes slopes;
  const double* sums = MergePartials(blocks, arrays.partials);
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    FinishChannel(blocks, known, arrays, place, channel, sums, slopes);
  });
  LoadGroup(blocks, known, group);
  __syncthreads();
  const ThreadRows rows = RowsOfThisThread(blocks);
  if (rows.count == 0) return;
  CombineRows<kFormula>(rows, ThreadNorm<kVector, kRelu>(group, rows.place), slopes, arrays);
}

template <Formula kFormula>
void Launch(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
            const BatchNormGradArrays& arrays) {
  if (blocks.groups == 0) return;
  WithConstants(blocks.vector, norm.relu, [&](auto vector, auto with_relu) {
    constexpr int kVector = decltype(vector)::value;
    constexpr bool kRelu = decltype(with_relu)::value;
    SumGradientsKernel<kVector, kRelu>
        <<<GridOf(blocks), kNormThreads, 0, stream>>>(blocks, norm, arrays);
    THIMBLE_CUDA_LAUNCHED();
    CombineGradientsKernel<kFormula, kVector, kRelu>
        <<<GridOf(blocks), kNormThreads, 0, stream>>>(blocks, norm, arrays);
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace

void LaunchBatchNormGrad(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                         const BatchNormGradArrays& arrays) {
  if (arrays.other != nullptr) {
    Launch<Formula::kBatchAdd>(stream, blocks, norm, arrays);
  } else {
    Launch<Formula::kBatch>(stream, blocks, norm, arrays);
  }
}

void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const BatchNormGradArrays& arrays) {
  Launch<Formula::kEval>(stream, blocks, norm, arrays);
}

}  // namespace thimble
