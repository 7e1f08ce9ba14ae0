#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/known_norm.cuh"

namespace thimble {
namespace {

// Rows, of two or three arrays, that a thread loads before it processes the first.
constexpr int kRowsAtOnce = 2;
// Maximum length of a chain of float additions: short chains lose less to rounding. The chains of a
// thread are added up in floats too, those of all threads in doubles.
constexpr int kRowsPerChain = 16;

// The formula for dx.
enum class Formula {
  kBatch,     // scale * (dy - offset - (x - mean) * slope)
  kBatchAdd,  // the same plus other
  kEval,      // scale * dy
};

// Some rows of a thread: of x, dy and, for kBatchAdd, `other`.
template <int kVector>
struct GradientBatch {
  RowBatch<kVector, kRowsAtOnce> x;
  RowBatch<kVector, kRowsAtOnce> dy;
  RowBatch<kVector, kRowsAtOnce> other;
};

// Sums of dy and of dy * (x - mean) over the thread's rows, the first of which are already loaded.
template <int kVector, bool kRelu>
__device__ ChannelSums<kVector> SumRows(const ThreadRows& rows,
                                        const ThreadNorm<kVector, kRelu>& norm,
                                        GradientBatch<kVector>& batch,
                                        const BatchNormGradArrays& arrays) {
  float total[2][kVector] = {};
  float chain[2][kVector] = {};
#pragma unroll 1
  for (int row = 0; row < rows.count;) {
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= rows.count) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(v, batch.x.at[k].at[v]);
        const float gradient = norm.Gradient(v, centred, batch.dy.at[k].at[v]);
        chain[0][v] += gradient;
        chain[1][v] = fmaf(gradient, centred, chain[1][v]);
      }
    }
    row += kRowsAtOnce;
    batch.x.Read(rows, row, arrays.x);
    batch.dy.Read(rows, row, arrays.dy);
    if (row < rows.count && row % kRowsPerChain != 0) continue;
#pragma unroll
    for (int v = 0; v < kVector; ++v) {
      total[0][v] += chain[0][v];
      total[1][v] += chain[1][v];
      chain[0][v] = chain[1][v] = 0;
    }
  }
  ChannelSums<kVector> sums;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    sums.sums[0][v] = total[0][v];
    sums.sums[1][v] = total[1][v];
  }
  return sums;
}

template <int kVector, bool kRelu>
__global__ void __launch_bounds__(kNormThreads, 1)
    SumGradientsKernel(ChannelBlocks blocks, KnownNorm known, BatchNormGradArrays arrays) {
  LetNextKernelBegin();
  __shared__ GroupNorm group;
  const ThreadRows rows = RowsOfThisThread(blocks);
  GradientBatch<kVector> batch;
  batch.x.Read(rows, 0, arrays.x);
  batch.dy.Read(rows, 0, arrays.dy);
  LoadGroup(blocks, known, group);
  __syncthreads();
  const ThreadNorm<kVector, kRelu> norm(group, rows.place);
  StorePartials(blocks, SumRows(rows, norm, batch, arrays), arrays.partials);
}

__device__ double Inverse(const KnownNorm& norm, int64_t statistic) {
  return 1.0 / sqrt(norm.variance[statistic] + norm.epsilon);
}

// The terms of each element's gradient that come from the batch statistics, in shared memory.
struct alignas(16) GroupSlopes {
  float offset[kMaxGroupChannels];
  float slope[kMaxGroupChannels];
};

// Turns the sums of a channel into its slopes and, if there is one part, its gradients.
__device__ void FinishChannel(const ChannelBlocks& blocks, const KnownNorm& norm,
                              const BatchNormGradArrays& arrays, int place, int64_t channel,
                              const double* sums, GroupSlopes& slopes) {
  const double count = static_cast<double>(blocks.rows == 0 ? 1 : blocks.PartRows(ThisPart()));
  const double inverse = Inverse(norm, StatisticOfThisPart(blocks, channel));
  const double dbeta = sums[place];
  const double dgamma = sums[blocks.group_channels() + place] * inverse;
  slopes.offset[place] = static_cast<float>(dbeta / count);
  slopes.slope[place] = static_cast<float>(dgamma * inverse / count);
  if (blockIdx.y == 0 && blocks.parts == 1) {
    arrays.dgamma[channel] = static_cast<float>(dgamma);
    arrays.dbeta[channel] = static_cast<float>(dbeta);
  }
}

// Computes the gradients of the group's gammas and betas if there are several parts. Called by all
// threads of one block.
__device__ void AddUpParts(const ChannelBlocks& blocks, const KnownNorm& norm,
                           const BatchNormGradArrays& arrays) {
  const MergeSlot slot = SlotOfThisThread(blocks);
  double mine = 0;
  if (slot.channel < blocks.channels) {
#pragma unroll 4
    for (int part = slot.begin; part < blocks.parts; part += slot.threads) {
      const double* from = PartialsOf(blocks, part, arrays.partials) +
                           (slot.second ? blocks.channels : 0) + slot.channel;
      double sum = 0;
      for (int chunk = 0; chunk < blocks.chunks; ++chunk) {
        sum += from[int64_t{chunk} * 2 * blocks.channels];
      }
      mine += slot.second ? sum * Inverse(norm, part * blocks.channels + slot.channel) : sum;
    }
  }
  const double* sums = AddUpSlots(blocks, slot, mine);
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    arrays.dbeta[channel] = static_cast<float>(sums[place]);
    arrays.dgamma[channel] = static_cast<float>(sums[blocks.group_channels() + place]);
  });
}

template <Formula kFormula, bool kRelu, int kVector>
__device__ void ReadBatch(const ThreadRows& rows, int row, const BatchNormGradArrays& arrays,
                          GradientBatch<kVector>& batch) {
  if constexpr (kFormula != Formula::kEval || kRelu) batch.x.Read(rows, row, arrays.x);
  batch.dy.Read(rows, row, arrays.dy);
  if constexpr (kFormula == Formula::kBatchAdd) batch.other.Read(rows, row, arrays.other);
}

// dx of row k of a batch.
template <Formula kFormula, int kVector, bool kRelu>
__device__ Pack<kVector> Combine(const ThreadNorm<kVector, kRelu>& norm,
                                 const Pack<kVector>& offset, const Pack<kVector>& slope,
                                 const GradientBatch<kVector>& batch, int k) {
  Pack<kVector> dx;
#pragma unroll
  for (int v = 0; v < kVector; ++v) {
    const float dy = batch.dy.at[k].at[v];
    if constexpr (kFormula == Formula::kEval && !kRelu) {
      dx.at[v] = norm.scale[v] * dy;
      continue;
    }
    const float centred = norm.Centred(v, batch.x.at[k].at[v]);
    const float gradient = norm.Gradient(v, centred, dy);
    if constexpr (kFormula == Formula::kEval) {
      dx.at[v] = norm.scale[v] * gradient;
      continue;
    }
    dx.at[v] = norm.scale[v] * fmaf(-centred, slope.at[v], gradient - offset.at[v]);
    if constexpr (kFormula == Formula::kBatchAdd) dx.at[v] = batch.other.at[k].at[v] + dx.at[v];
  }
  return dx;
}

// Writes dx of the thread's elements, the first of which are already loaded; dx may be x, dy or
// other, as each element is read before it is written.
template <Formula kFormula, int kVector, bool kRelu>
__device__ void CombineRows(const ThreadRows& rows, const ThreadNorm<kVector, kRelu>& norm,
                            const GroupSlopes& slopes, GradientBatch<kVector>& batch,
                            const BatchNormGradArrays& arrays) {
  const auto offset = Load<kVector>(slopes.offset + rows.place);
  const auto slope = Load<kVector>(slopes.slope + rows.place);
#pragma unroll 1
  for (int row = 0; row < rows.count;) {
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) {
      if (row + k >= rows.count) break;
      Store<kVector>(arrays.dx + rows.Element(row + k),
                     Combine<kFormula>(norm, offset, slope, batch, k));
    }
    row += kRowsAtOnce;
    ReadBatch<kFormula, kRelu>(rows, row, arrays, batch);
  }
}

// With several parts, the blocks after the last part add up the gradients of gamma and beta.
template <Formula kFormula, int kVector, bool kRelu>
__global__ void __launch_bounds__(kNormThreads, 1)
    CombineGradientsKernel(ChannelBlocks blocks, KnownNorm known, BatchNormGradArrays arrays) {
  __shared__ GroupNorm group;
  __shared__ GroupSlopes slopes;
  if (ThisPart() == blocks.parts) {
    WaitForKernelBefore();
    if (blockIdx.y == 0) AddUpParts(blocks, known, arrays);
    return;
  }
  const ThreadRows rows = RowsOfThisThread(blocks);
  GradientBatch<kVector> batch;
  ReadBatch<kFormula, kRelu>(rows, 0, arrays, batch);
  WaitForKernelBefore();
  const double* sums = MergePartials(blocks, arrays.partials);
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    FinishChannel(blocks, known, arrays, place, channel, sums, slopes);
  });
  LoadGroup(blocks, known, group);
  __syncthreads();
  CombineRows<kFormula>(rows, ThreadNorm<kVector, kRelu>(group, rows.place), slopes, batch, arrays);
}

dim3 CombiningGridOf(const ChannelBlocks& blocks) {
  dim3 grid = GridOf(blocks);
  if (blocks.parts > 1) ++grid.z;
  return grid;
}

// Two launches: sums of the chunks; merging them and combining.
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
    LaunchEarly(stream, CombiningGridOf(blocks), kNormThreads,
                CombineGradientsKernel<kFormula, kVector, kRelu>, blocks, norm, arrays);
  });
}

template <Formula kFormula>
void RunGrad(const KernelCall& call, const float* other) {
  Launch<kFormula>(call.stream, BlocksFor(call.in_shape(0), call.attributes),
                   {.gamma = call.In<float>(1),
                    .beta = call.In<float>(2),
                    .mean = call.In<float>(3),
                    .variance = call.In<float>(4),
                    .epsilon = call.attributes.Float("epsilon"),
                    .relu = call.attributes.Int("relu") != 0},
                   {.x = call.In<float>(0),
                    .dy = call.In<float>(5),
                    .other = other,
                    .partials = reinterpret_cast<double*>(call.scratch.data()),
                    .dx = call.Out<float>(0),
                    .dgamma = call.Out<float>(1),
                    .dbeta = call.Out<float>(2)});
}

}  // namespace

void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const BatchNormGradArrays& arrays) {
  Launch<Formula::kEval>(stream, blocks, norm, arrays);
}

size_t BatchNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void BatchNormGradCuda::Run(const KernelCall& call) { RunGrad<Formula::kBatch>(call, nullptr); }

size_t BatchNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCuda::ScratchBytes(call, limits);
}

void BatchNormGradAddCuda::Run(const KernelCall& call) {
  RunGrad<Formula::kBatchAdd>(call, call.In<float>(6));
}

}  // namespace thimble
