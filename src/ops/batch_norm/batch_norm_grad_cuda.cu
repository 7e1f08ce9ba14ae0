#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/known_norm.cuh"

namespace thimble {
namespace {

// Rows, of two or three arrays, that a thread loads before it processes the first.
template <class Storage>
constexpr int kRowsAtOnce = RowsAtOnce<Storage>(2);
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
template <class Storage, int kVector>
struct GradientBatch {
  static constexpr int kRows = kRowsAtOnce<Storage>;
  RowBatch<Storage, kVector, kRows> x;
  RowBatch<Storage, kVector, kRows> dy;
  RowBatch<Storage, kVector, kRows> other;
};

// Sums of dy and of dy * (x - mean) over the thread's rows, the first of which are already loaded.
template <class Storage, int kVector, class Relu>
__device__ ChannelSums<kVector> SumRows(const ThreadRows& rows,
                                        const ThreadNorm<kVector, Relu>& norm,
                                        GradientBatch<Storage, kVector>& batch,
                                        const GradientTensors<Storage>& tensors) {
  static_assert(kRowsPerChain % batch.kRows == 0);
  float total[2][kVector] = {};
  float chain[2][kVector] = {};
#pragma unroll 1
  for (int row = 0; row < rows.count;) {
#pragma unroll
    for (int k = 0; k < batch.kRows; ++k) {
      if (row + k >= rows.count) break;
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        const float centred = norm.Centred(v, batch.x.at[k][v]);
        const float gradient = norm.Gradient(v, centred, batch.dy.at[k][v]);
        chain[0][v] += gradient;
        chain[1][v] = fmaf(gradient, centred, chain[1][v]);
      }
    }
    row += batch.kRows;
    batch.x.Read(rows, row, tensors.x);
    batch.dy.Read(rows, row, tensors.dy);
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

template <class Storage, int kVector, class Relu>
__global__ void __launch_bounds__(kNormThreads, 1)
    SumGradientsKernel(ChannelBlocks blocks, KnownNorm known, Relu relu,
                       GradientTensors<Storage> tensors, double* partials) {
  __shared__ GroupNorm group;
  const ThreadRows rows = RowsOfThisThread(blocks);
  GradientBatch<Storage, kVector> batch;
  WaitForKernelsBefore();
  batch.x.Read(rows, 0, tensors.x);
  batch.dy.Read(rows, 0, tensors.dy);
  LoadGroup(blocks, known, group);
  __syncthreads();
  const ThreadNorm<kVector, Relu> norm(group, rows.place, relu);
  StorePartials(blocks, SumRows(rows, norm, batch, tensors), partials);
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
__device__ void FinishChannel(const ChannelBlocks& blocks, double inverse,
                              const GradientSums& gradients, int place, int64_t channel,
                              const double* sums, GroupSlopes& slopes) {
  const double count = static_cast<double>(blocks.rows == 0 ? 1 : blocks.PartRows(ThisPart()));
  const double dbeta = sums[place];
  const double dgamma = sums[blocks.group_channels() + place] * inverse;
  slopes.offset[place] = static_cast<float>(dbeta / count);
  slopes.slope[place] = static_cast<float>(dgamma * inverse / count);
  if (blockIdx.y == 0 && blocks.parts == 1) {
    gradients.dgamma[channel] = static_cast<float>(dgamma);
    gradients.dbeta[channel] = static_cast<float>(dbeta);
  }
}

// Computes the gradients of the group's gammas and betas if there are several parts. Called by all
// threads of one block.
__device__ void AddUpParts(const ChannelBlocks& blocks, const KnownNorm& norm,
                           const GradientSums& gradients) {
  const MergeSlot slot = SlotOfThisThread(blocks);
  double mine = 0;
  if (slot.channel < blocks.channels) {
#pragma unroll 4
    for (int part = slot.begin; part < blocks.parts; part += slot.threads) {
      const double* from = PartialsOf(blocks, part, gradients.partials) +
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
    gradients.dbeta[channel] = static_cast<float>(sums[place]);
    gradients.dgamma[channel] = static_cast<float>(sums[blocks.group_channels() + place]);
  });
}

// Whether dx depends on x.
template <Formula kFormula, class Relu>
constexpr bool kReadsX = kFormula != Formula::kEval || !std::is_same_v<Relu, std::false_type>;

template <Formula kFormula, class Relu, class Storage, int kVector>
__device__ void ReadBatch(const ThreadRows& rows, int row, const GradientTensors<Storage>& tensors,
                          GradientBatch<Storage, kVector>& batch) {
  if constexpr (kReadsX<kFormula, Relu>) batch.x.Read(rows, row, tensors.x);
  batch.dy.Read(rows, row, tensors.dy);
  if constexpr (kFormula == Formula::kBatchAdd) batch.other.Read(rows, row, tensors.other);
}

// dx of element v in row k of a batch.
template <Formula kFormula, class Storage, int kVector, class Relu>
__device__ float Combine(const ThreadNorm<kVector, Relu>& norm, float offset, float slope,
                         const GradientBatch<Storage, kVector>& batch, int k, int v) {
  const float dy = batch.dy.at[k][v];
  if constexpr (!kReadsX<kFormula, Relu>) return norm.scale[v] * dy;
  const float centred = norm.Centred(v, batch.x.at[k][v]);
  const float gradient = norm.Gradient(v, centred, dy);
  if constexpr (kFormula == Formula::kEval) return norm.scale[v] * gradient;
  const float dx = norm.scale[v] * fmaf(-centred, slope, gradient - offset);
  if constexpr (kFormula == Formula::kBatchAdd) return batch.other.at[k][v] + dx;
  return dx;
}

// Writes dx of the thread's elements, the first of which are already loaded; dx may be x, dy or
// other, as each element is read before it is written.
template <Formula kFormula, class Storage, int kVector, class Relu>
__device__ void CombineRows(const ThreadRows& rows, const ThreadNorm<kVector, Relu>& norm,
                            const GroupSlopes& slopes, GradientBatch<Storage, kVector>& batch,
                            const GradientTensors<Storage>& tensors) {
  const auto offset = LoadPack<kVector>(slopes.offset + rows.place);
  const auto slope = LoadPack<kVector>(slopes.slope + rows.place);
#pragma unroll 1
  for (int row = 0; row < rows.count;) {
#pragma unroll
    for (int k = 0; k < batch.kRows; ++k) {
      if (row + k >= rows.count) break;
      float dx[kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        dx[v] = Combine<kFormula>(norm, offset[v], slope[v], batch, k, v);
      }
      StorePack(dx, tensors.dx + rows.Element(row + k));
    }
    row += batch.kRows;
    ReadBatch<kFormula, Relu>(rows, row, tensors, batch);
  }
}

// With several parts, the blocks after the last part add up the gradients of gamma and beta.
template <Formula kFormula, class Storage, int kVector, class Relu>
__global__ void __launch_bounds__(kNormThreads, 1)
    CombineGradientsKernel(ChannelBlocks blocks, KnownNorm known, Relu relu,
                           GradientTensors<Storage> tensors, GradientSums gradients) {
  __shared__ GroupNorm group;
  __shared__ GroupSlopes slopes;
  if (ThisPart() == blocks.parts) {
    WaitForKernelsBefore();
    if (blockIdx.y == 0) AddUpParts(blocks, known, gradients);
    return;
  }
  const ThreadRows rows = RowsOfThisThread(blocks);
  GradientBatch<Storage, kVector> batch;
  ReadBatch<kFormula, Relu>(rows, 0, tensors, batch);
  // Two warps, at the same time.
  double inverse = 0;
  ForEachChannelOfGroup(blocks, 0, [&](int /*place*/, int64_t channel) {
    inverse = Inverse(known, StatisticOfThisPart(blocks, channel));
  });
  LoadGroup(blocks, known, group);
  WaitForKernelsBefore();
  const double* sums = MergePartials(blocks, gradients.partials);
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    FinishChannel(blocks, inverse, gradients, place, channel, sums, slopes);
  });
  __syncthreads();
  CombineRows<kFormula>(rows, ThreadNorm<kVector, Relu>(group, rows.place, relu), slopes, batch,
                        tensors);
}

dim3 CombiningGridOf(const ChannelBlocks& blocks) {
  dim3 grid = GridOf(blocks);
  if (blocks.parts > 1) ++grid.z;
  return grid;
}

// Two launches: sums of the chunks; merging them and combining.
template <Formula kFormula>
void Launch(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
            const GradientTensors<AnyNumber>& any, const GradientSums& gradients) {
  if (blocks.groups == 0) return;
  WithConstants(TypesOf(any), blocks.vector, norm.relu, [&](auto storage, auto vector, auto relu) {
    using Storage = decltype(storage);
    constexpr int kVector = decltype(vector)::value;
    const GradientTensors<Storage> tensors = As<Storage>(any);
    SumGradientsKernel<Storage, kVector><<<GridOf(blocks), kNormThreads, 0, stream>>>(
        blocks, norm, relu, tensors, gradients.partials);
    THIMBLE_CUDA_LAUNCHED();
    LaunchEarly(stream, CombiningGridOf(blocks), kNormThreads,
                CombineGradientsKernel<kFormula, Storage, kVector, decltype(relu)>, blocks, norm,
                relu, tensors, gradients);
  });
}

template <Formula kFormula>
void RunGrad(const KernelCall& call, ConstNumbers other) {
  Launch<kFormula>(call.stream, BlocksFor(call.in_shape(0), call.attributes),
                   {.gamma = call.In<float>(1),
                    .beta = call.In<float>(2),
                    .mean = call.In<float>(3),
                    .variance = call.In<float>(4),
                    .epsilon = call.attributes.Float("epsilon"),
                    .relu = call.attributes.Int("relu") != 0},
                   GradientTensorsOf(call, other), GradientSumsOf(call));
}

}  // namespace

void LaunchBatchNormEvalGrad(cudaStream_t stream, const ChannelBlocks& blocks,
                             const KnownNorm& norm, const GradientTensors<AnyNumber>& tensors,
                             const GradientSums& sums) {
  Launch<Formula::kEval>(stream, blocks, norm, tensors, sums);
}

size_t BatchNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void BatchNormGradCuda::Run(const KernelCall& call) { RunGrad<Formula::kBatch>(call, {}); }

size_t BatchNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCuda::ScratchBytes(call, limits);
}

void BatchNormGradAddCuda::Run(const KernelCall& call) {
  RunGrad<Formula::kBatchAdd>(call, ConstNumbersOf(call.inputs[6]));
}

}  // namespace thimble
