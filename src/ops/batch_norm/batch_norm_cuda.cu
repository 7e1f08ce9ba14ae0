#include <array>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/ops/batch_norm/batch_norm.h"
#include "thimble/ops/batch_norm/known_norm.cuh"

namespace thimble {
namespace {

struct BatchNormArrays {
  const float* gamma;
  const float* beta;
  double* partials;  // scratch: blocks.num_partials()
  float* guess;      // scratch: (parts, C), subtracted from x before summing
  float* mean;
  float* variance;
};

// Rows that a thread loads before it processes the first.
template <class Storage>
constexpr int kNormRowsAtOnce = RowsAtOnce<Storage>(4);

// Sums of x - guess and of its square. In doubles, because the guess, a part's first row, may be
// far from the mean: at most by sqrt(rows) standard deviations, as it is one of the rows, so that
// the variance loses log2(rows) of 53 bits in the worst case.
template <class Storage, int kVector>
__global__ void __launch_bounds__(kNormThreads, 1)
    MeasureKernel(ChannelBlocks blocks, InNumbers<Storage> x, BatchNormArrays arrays) {
  constexpr int kRows = kNormRowsAtOnce<Storage>;
  const ThreadRows rows = RowsOfThisThread(blocks);
  const auto first_row = x + blocks.FirstRow(ThisPart()) * blocks.channels;
  RowBatch<Storage, kVector, kRows> batch;
  ChannelSums<kVector> sums;
  WaitForKernelsBefore();
  if (rows.count > 0) {
    const auto guess = LoadPack<kVector>(first_row + rows.channel);
#pragma unroll 1
    for (int row = 0; row < rows.count; row += kRows) {
      batch.Read(rows, row, x);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (row + k >= rows.count) break;
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          const double distance = static_cast<double>(batch.at[k][v]) - guess[v];
          sums.sums[0][v] += distance;
          sums.sums[1][v] = fma(distance, distance, sums.sums[1][v]);
        }
      }
    }
  }
  StorePartials(blocks, sums, arrays.partials);
  // The next kernel may overwrite x with y while some of its blocks still need the guess.
  if (blockIdx.y == 0) {
    ForEachChannelOfGroup(blocks, 0, [&](int /*place*/, int64_t channel) {
      arrays.guess[StatisticOfThisPart(blocks, channel)] =
          blocks.rows == 0 ? 0.0F : LoadNumber(first_row + channel);
    });
  }
}

// What the thread that finishes a channel reads before the sums are there.
struct ChannelInputs {
  float gamma = 0;
  float beta = 0;
  float guess = 0;
};

// Turns the sums of a channel into its stored statistics and its constants.
__device__ void FinishChannel(const ChannelBlocks& blocks, const BatchNormArrays& arrays,
                              const ChannelInputs& inputs, double epsilon, int place,
                              int64_t channel, const double* sums, GroupNorm& group) {
  const int64_t statistic = StatisticOfThisPart(blocks, channel);
  const double count = static_cast<double>(blocks.rows == 0 ? 1 : blocks.PartRows(ThisPart()));
  const double sum = sums[place];
  const double distance = sum / count;
  double squares = sums[blocks.group_channels() + place] - sum * distance;
  // Rounding can give a tiny negative number if all values are equal; NaN must stay.
  if (squares < 0) squares = 0;
  const float mean = static_cast<float>(inputs.guess + distance);
  const float variance = static_cast<float>(squares / count);
  group.mean[place] = mean;
  group.scale[place] = ChannelScale(inputs.gamma, variance, epsilon);
  group.shift[place] = inputs.beta;
  if (blockIdx.y == 0) {
    arrays.mean[statistic] = mean;
    arrays.variance[statistic] = variance;
  }
}

// Writes y of the thread's elements, the first of which are already loaded; y may be x, as each
// element is read before it is written.
template <class Storage, int kVector, int kRows, class Relu>
__device__ void NormalizeRows(const ThreadRows& rows, const ThreadNorm<kVector, Relu>& norm,
                              RowBatch<Storage, kVector, kRows>& batch, InNumbers<Storage> x,
                              OutNumbers<Storage> y) {
#pragma unroll 1
  for (int row = 0; row < rows.count;) {
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      if (row + k >= rows.count) break;
      float output[kVector];
#pragma unroll
      for (int v = 0; v < kVector; ++v) output[v] = norm.Output(v, batch.at[k][v]);
      StorePack(output, y + rows.Element(row + k));
    }
    row += kRows;
    batch.Read(rows, row, x);
  }
}

template <class Storage, int kVector, class Relu>
__global__ void __launch_bounds__(kNormThreads, 1)
    BatchNormKernel(ChannelBlocks blocks, InNumbers<Storage> x, BatchNormArrays arrays,
                    double epsilon, Relu relu, OutNumbers<Storage> y) {
  __shared__ GroupNorm group;
  const ThreadRows rows = RowsOfThisThread(blocks);
  RowBatch<Storage, kVector, kNormRowsAtOnce<Storage>> batch;
  batch.Read(rows, 0, x);
  ChannelInputs inputs;
  ForEachChannelOfGroup(blocks, 0, [&](int /*place*/, int64_t channel) {
    inputs.gamma = arrays.gamma[channel];
    inputs.beta = arrays.beta[channel];
  });
  WaitForKernelsBefore();
  ForEachChannelOfGroup(blocks, 0, [&](int /*place*/, int64_t channel) {
    inputs.guess = arrays.guess[StatisticOfThisPart(blocks, channel)];
  });
  const double* sums = MergePartials(blocks, arrays.partials);
  ForEachChannelOfGroup(blocks, 0, [&](int place, int64_t channel) {
    FinishChannel(blocks, arrays, inputs, epsilon, place, channel, sums, group);
  });
  __syncthreads();
  NormalizeRows(rows, ThreadNorm<kVector, Relu>(group, rows.place, relu), batch, x, y);
}

template <class Storage, int kVector, class Relu>
__global__ void __launch_bounds__(kNormThreads, 1)
    NormalizeKernel(ChannelBlocks blocks, KnownNorm norm, Relu relu, InNumbers<Storage> x,
                    OutNumbers<Storage> y) {
  __shared__ GroupNorm group;
  const ThreadRows rows = RowsOfThisThread(blocks);
  RowBatch<Storage, kVector, kNormRowsAtOnce<Storage>> batch;
  WaitForKernelsBefore();
  batch.Read(rows, 0, x);
  LoadGroup(blocks, norm, group);
  __syncthreads();
  NormalizeRows(rows, ThreadNorm<kVector, Relu>(group, rows.place, relu), batch, x, y);
}

}  // namespace

ChannelBlocks BlocksFor(const Shape& x, const Attributes& attributes) {
  const int64_t channels = x[x.rank() - 1];
  const int64_t sample_rows = x.elements() == 0 ? 0 : x.elements() / x[0] / channels;
  return {sample_rows, channels, SampleParts(x, attributes)};
}

std::string_view FewParts::Declines(const OpCall& call) {
  if (SampleParts(call.inputs[0], call.attributes).parts <= kMaxNormParts) return {};
  return "a grid is limited to 65,534 groups of samples";
}

void LaunchNormalize(cudaStream_t stream, const ChannelBlocks& blocks, const KnownNorm& norm,
                     ConstNumbers x, Numbers y) {
  if (blocks.groups == 0) return;
  const std::array types{x.type, y.type};
  WithConstants(types, blocks.vector, norm.relu, [&](auto storage, auto vector, auto relu) {
    using Storage = decltype(storage);
    NormalizeKernel<Storage, decltype(vector)::value><<<GridOf(blocks), kNormThreads, 0, stream>>>(
        blocks, norm, relu, As<Storage>(x), As<Storage>(y));
    THIMBLE_CUDA_LAUNCHED();
  });
}

// The partial sums, and one float for each statistic.
size_t BatchNormCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const ChannelBlocks blocks = BlocksFor(call.inputs[0], call.attributes);
  return blocks.num_partials() * sizeof(double) + blocks.num_statistics() * sizeof(float);
}

// Two launches: statistics of the chunks; merging them and normalizing.
void BatchNormCuda::Run(const KernelCall& call) {
  const ChannelBlocks blocks = BlocksFor(call.in_shape(0), call.attributes);
  if (blocks.groups == 0) return;
  auto* partials = reinterpret_cast<double*>(call.scratch.data());
  const BatchNormArrays arrays{.gamma = call.In<float>(1),
                               .beta = call.In<float>(2),
                               .partials = partials,
                               .guess = reinterpret_cast<float*>(partials + blocks.num_partials()),
                               .mean = call.Out<float>(1),
                               .variance = call.Out<float>(2)};
  const double epsilon = call.attributes.Float("epsilon");
  const bool with_relu = call.attributes.Int("relu") != 0;
  const std::array types{call.inputs[0].dtype, call.outputs[0].dtype};
  WithConstants(types, blocks.vector, with_relu, [&](auto storage, auto vector, auto relu) {
    using Storage = decltype(storage);
    constexpr int kVector = decltype(vector)::value;
    const auto x = As<Storage>(ConstNumbersOf(call.inputs[0]));
    const auto y = As<Storage>(NumbersOf(call.outputs[0]));
    MeasureKernel<Storage, kVector>
        <<<GridOf(blocks), kNormThreads, 0, call.stream>>>(blocks, x, arrays);
    THIMBLE_CUDA_LAUNCHED();
    LaunchEarly(call.stream, GridOf(blocks), kNormThreads,
                BatchNormKernel<Storage, kVector, decltype(relu)>, blocks, x, arrays, epsilon, relu,
                y);
  });
}

}  // namespace thimble
