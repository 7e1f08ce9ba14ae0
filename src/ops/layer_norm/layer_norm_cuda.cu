// A warp works on a row. Rows of moderate size are read from memory once and stay in registers;
// others are read again for each pass over them.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/column_sums.h"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/layer_norm/kept_row.cuh"
#include "thimble/ops/layer_norm/layer_norm.h"

namespace thimble {
namespace {

constexpr int kLayerWarps = 8;
constexpr int kLayerThreads = kLayerWarps * kWarpLanes;
// Blocks that each multiprocessor of a large GPU runs at once, and all of them.
constexpr int kLayerBlocksAtOnce = 4;
constexpr int64_t kMostLayerBlocks = 132 * kLayerBlocksAtOnce;
// Backward: one block on each of them, whose warps need many registers.
constexpr int64_t kMostLayerGradBlocks = 132;

// Groups of a lane in registers: for rows of up to 512 and 1,024 channels.
constexpr int kFewGroups = 2;
constexpr int kMostGroups = 4;
constexpr int64_t kMostKeptChannels = int64_t{kMostGroups} * kRowGroup * kWarpLanes;

struct LayerRows {
  int64_t rows;
  int channels;
  double epsilon;
};

LayerRows LayerRowsOf(const KernelCall& call) {
  const Shape& x = call.in_shape(0);
  const int64_t channels = x[x.rank() - 1];
  return {channels == 0 ? 0 : x.elements() / channels, static_cast<int>(channels),
          call.attributes.Float("epsilon")};
}

// Whether rows stay in registers.
bool AreKept(int64_t channels) {
  return channels > 0 && channels % kRowGroup == 0 && channels <= kMostKeptChannels;
}

int64_t LayerBlocksFor(int64_t rows) {
  return std::min<int64_t>(kMostLayerBlocks, (rows - 1) / kLayerWarps + 1);
}

// Calls visit(channel) for the lane's channels of a row that is not kept.
template <class Visit>
__device__ void ForEachRowChannel(int channels, const Visit& visit) {
  for (int c = static_cast<int>(threadIdx.x) % kWarpLanes; c < channels; c += kWarpLanes) visit(c);
}

// The first row of this warp, and how far the next one is from it.
__device__ int64_t FirstLayerRow() {
  return int64_t{blockIdx.x} * (blockDim.x / kWarpLanes) + threadIdx.x / kWarpLanes;
}
__device__ int64_t LayerRowStep() { return int64_t{gridDim.x} * (blockDim.x / kWarpLanes); }

// Calls body(row) for the rows of this warp.
template <class Body>
__device__ void ForEachLayerRow(const LayerRows& sizes, const Body& body) {
  for (int64_t row = FirstLayerRow(); row < sizes.rows; row += LayerRowStep()) body(row);
}

// ---- Forward

template <class Storage>
struct LayerNormArrays {
  InNumbers<Storage> x;  // (rows, C)
  const float* gamma;    // (C)
  const float* beta;     // (C)
  OutNumbers<Storage> y;
  float* mean;      // (rows)
  float* variance;  // (rows)
};

// What normalizes a row.
struct LayerRowNorm {
  float mean, inverse;

  __device__ LayerRowNorm(float the_mean, float variance, double epsilon)
      : mean(the_mean), inverse(static_cast<float>(rsqrt(variance + epsilon))) {}
  __device__ float operator()(float x) const { return (x - mean) * inverse; }
};

__device__ void StoreRowStatistics(int64_t row, float mean, float variance, float* means,
                                   float* variances) {
  if (threadIdx.x % kWarpLanes != 0) return;
  means[row] = mean;
  variances[row] = variance;
}

template <class Storage, int kGroups>
__global__ void __launch_bounds__(kLayerThreads, kLayerBlocksAtOnce* kFewGroups / kGroups)
    LayerNormKernel(LayerRows sizes, LayerNormArrays<Storage> arrays) {
  WaitForKernelsBefore();
  const auto count = static_cast<float>(sizes.channels);
  KeptRow<kGroups> gamma;
  gamma.template Load<float>(arrays.gamma, sizes.channels);
  ForEachLayerRow(sizes, [&](int64_t row) {
    KeptRow<kGroups> x;
    x.template Load<Storage>(arrays.x + row * sizes.channels, sizes.channels);
    float sum = 0;
    x.ForEach(sizes.channels, [&](float number, int, int) { sum += number; });
    const float mean = WarpSum(sum) / count;
    float squares = 0;
    x.ForEach(sizes.channels, [&](float number, int, int) {
      squares = fmaf(number - mean, number - mean, squares);
    });
    const float variance = WarpSum(squares) / count;
    StoreRowStatistics(row, mean, variance, arrays.mean, arrays.variance);
    const LayerRowNorm norm(mean, variance, sizes.epsilon);
    // Not before the loop like gamma: registers would not suffice.
    KeptRow<kGroups> beta;
    beta.template Load<float>(arrays.beta, sizes.channels);
    x.ForEach(sizes.channels, [&](float& number, int i, int k) {
      number = fmaf(norm(number), gamma.at[i][k], beta.at[i][k]);
    });
    x.Store(arrays.y + row * sizes.channels, sizes.channels);
  });
}

// y may be x: a lane writes only what it alone reads, after all other passes.
__global__ void __launch_bounds__(kLayerThreads)
    LayerNormLongKernel(LayerRows sizes, LayerNormArrays<AnyNumber> arrays) {
  WaitForKernelsBefore();
  const auto count = static_cast<float>(sizes.channels);
  ForEachLayerRow(sizes, [&](int64_t row) {
    const auto x = arrays.x + row * sizes.channels;
    float sum = 0;
    ForEachRowChannel(sizes.channels, [&](int c) { sum += LoadNumber(x + c); });
    const float mean = WarpSum(sum) / count;
    float squares = 0;
    ForEachRowChannel(sizes.channels, [&](int c) {
      const float distance = LoadNumber(x + c) - mean;
      squares = fmaf(distance, distance, squares);
    });
    const float variance = WarpSum(squares) / count;
    StoreRowStatistics(row, mean, variance, arrays.mean, arrays.variance);
    const LayerRowNorm norm(mean, variance, sizes.epsilon);
    const auto y = arrays.y + row * sizes.channels;
    ForEachRowChannel(sizes.channels, [&](int c) {
      StoreNumber(fmaf(norm(LoadNumber(x + c)), arrays.gamma[c], arrays.beta[c]), y + c);
    });
  });
}

// Rows without channels: means of nothing.
__global__ void EmptyRowsKernel(int64_t rows, float* mean, float* variance) {
  WaitForKernelsBefore();
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < rows; row += step) {
    mean[row] = variance[row] = 0;
  }
}

// ---- Backward

template <class Storage>
struct LayerNormGradArrays {
  InNumbers<Storage> x;   // (rows, C)
  const float* gamma;     // (C)
  const float* mean;      // (rows)
  const float* variance;  // (rows)
  InNumbers<Storage> dy;  // (rows, C)
  OutNumbers<Storage> dx;
};

// The derivative by one number of a row.
struct RowGradient {
  float inverse, mean_slope, mean_product;

  // Sums over the row of gamma * dy, and of gamma * dy * normalized x.
  __device__ RowGradient(const LayerRowNorm& norm, float slopes, float products, int channels)
      : inverse(norm.inverse),
        mean_slope(WarpSum(slopes) / static_cast<float>(channels)),
        mean_product(WarpSum(products) / static_cast<float>(channels)) {}
  __device__ float operator()(float slope, float normalized) const {
    return (slope - mean_slope - normalized * mean_product) * inverse;
  }
};

// What backward reads of a row.
template <class Storage, int kGroups>
struct LayerGradRow {
  StoredRow<Storage, kGroups> x, dy;
  float mean, variance;

  // Zeros if there is no such row.
  __device__ void Load(const LayerRows& sizes, const LayerNormGradArrays<Storage>& arrays,
                       int64_t row) {
    const bool exists = row < sizes.rows;
    const int channels = exists ? sizes.channels : 0;
    x.Load(arrays.x + row * sizes.channels, channels);
    dy.Load(arrays.dy + row * sizes.channels, channels);
    mean = exists ? arrays.mean[row] : 0;
    variance = exists ? arrays.variance[row] : 0;
  }
};

// A row for each warp of a block, to be added up.
template <int kGroups, int kWarps>
struct ChannelSums {
  alignas(16) float of_warp[kWarps][kGroups * kRowGroup * kWarpLanes];

  // Stores the sums (C) of what the warps have, one warp after the other. Called by all threads.
  __device__ void AddUp(const KeptRow<kGroups>& mine, int channels, float* to) {
    __syncthreads();  // an earlier call has read them
    mine.Store(&of_warp[threadIdx.x / kWarpLanes][0], channels);
    __syncthreads();
#pragma unroll 1
    for (int c = static_cast<int>(threadIdx.x); c < channels; c += kWarps * kWarpLanes) {
      float sum = 0;
#pragma unroll
      for (int warp = 0; warp < kWarps; ++warp) sum += of_warp[warp][c];
      to[c] = sum;
    }
  }
};

// Warps of a block, as many as get enough registers.
template <class Storage, int kGroups>
constexpr int kLayerGradWarps = kGroups == kFewGroups && sizeof(Storage) == 2 ? 16 : 8;
// For any storage, so that scratch depends on the shape alone.
constexpr int kMostLayerGradWarps = 16;
// Whether a row is loaded while the warp works on the one before.
template <class Storage, int kGroups>
constexpr bool kLoadsRowAhead = kGroups == kFewGroups || sizeof(Storage) == 2;

// dx, and the sums of dgamma and dbeta over the rows of each block (blocks, C). dx may be dy or x:
// a row is in registers before it is written.
template <class Storage, int kGroups>
__global__ void __launch_bounds__(kLayerGradWarps<Storage, kGroups>* kWarpLanes, 1)
    LayerNormGradKernel(LayerRows sizes, LayerNormGradArrays<Storage> arrays, float* dgamma,
                        float* dbeta) {
  __shared__ ChannelSums<kGroups, kLayerGradWarps<Storage, kGroups>> sums;
  WaitForKernelsBefore();
  KeptRow<kGroups> gamma_sums = {};
  KeptRow<kGroups> beta_sums = {};
  constexpr bool kAhead = kLoadsRowAhead<Storage, kGroups>;
  LayerGradRow<Storage, kGroups> next;
  if (kAhead) next.Load(sizes, arrays, FirstLayerRow());
  KeptRow<kGroups> gamma;
  gamma.template Load<float>(arrays.gamma, sizes.channels);
  ForEachLayerRow(sizes, [&](int64_t row) {
    if (!kAhead) next.Load(sizes, arrays, row);
    const LayerGradRow<Storage, kGroups> own = next;
    if (kAhead) next.Load(sizes, arrays, row + LayerRowStep());
    KeptRow<kGroups> x;
    KeptRow<kGroups> dy;
    x.Decode(own.x);
    dy.Decode(own.dy);
    // All lanes have it, but only a shuffle keeps the compiler from using it before it loads the
    // next row.
    const float variance = __shfl_sync(0xFFFFFFFFU, own.variance, 0);
    const LayerRowNorm norm(own.mean, variance, sizes.epsilon);
    float slopes = 0;
    float products = 0;
    x.ForEach(sizes.channels, [&](float& number, int i, int k) {
      number = norm(number);
      float& slope = dy.at[i][k];
      gamma_sums.at[i][k] = fmaf(slope, number, gamma_sums.at[i][k]);
      beta_sums.at[i][k] += slope;
      slope *= gamma.at[i][k];
      slopes += slope;
      products = fmaf(slope, number, products);
    });
    const RowGradient gradient(norm, slopes, products, sizes.channels);
    x.ForEach(sizes.channels,
              [&](float& number, int i, int k) { number = gradient(dy.at[i][k], number); });
    x.Store(arrays.dx + row * sizes.channels, sizes.channels);
  });
  const int64_t place = int64_t{blockIdx.x} * sizes.channels;
  sums.AddUp(gamma_sums, sizes.channels, dgamma + place);
  sums.AddUp(beta_sums, sizes.channels, dbeta + place);
}

__global__ void __launch_bounds__(kLayerThreads)
    LayerNormGradLongKernel(LayerRows sizes, LayerNormGradArrays<AnyNumber> arrays) {
  WaitForKernelsBefore();
  ForEachLayerRow(sizes, [&](int64_t row) {
    const auto x = arrays.x + row * sizes.channels;
    const auto dy = arrays.dy + row * sizes.channels;
    const auto dx = arrays.dx + row * sizes.channels;
    const LayerRowNorm norm(arrays.mean[row], arrays.variance[row], sizes.epsilon);
    float slopes = 0;
    float products = 0;
    ForEachRowChannel(sizes.channels, [&](int c) {
      const float slope = arrays.gamma[c] * LoadNumber(dy + c);
      slopes += slope;
      products = fmaf(slope, norm(LoadNumber(x + c)), products);
    });
    const RowGradient gradient(norm, slopes, products, sizes.channels);
    ForEachRowChannel(sizes.channels, [&](int c) {
      const float slope = arrays.gamma[c] * LoadNumber(dy + c);
      StoreNumber(gradient(slope, norm(LoadNumber(x + c))), dx + c);
    });
  });
}

// Of rows that are not kept: a thread per channel and part of the rows, whose sums are added up.
constexpr int kLayerChannelParts = 32;
__global__ void __launch_bounds__(kWarpLanes* kLayerChannelParts)
    LayerNormChannelsKernel(LayerRows sizes, LayerNormGradArrays<AnyNumber> arrays, float* dgamma,
                            float* dbeta) {
  __shared__ double parts[2][kLayerChannelParts][kWarpLanes];
  const int channel = static_cast<int>(blockIdx.x) * kWarpLanes + static_cast<int>(threadIdx.x);
  double sums[2] = {0, 0};
  WaitForKernelsBefore();
  if (channel < sizes.channels) {
    for (int64_t row = threadIdx.y; row < sizes.rows; row += kLayerChannelParts) {
      const LayerRowNorm norm(arrays.mean[row], arrays.variance[row], sizes.epsilon);
      const int64_t at = row * sizes.channels + channel;
      const float dy = LoadNumber(arrays.dy + at);
      sums[0] += double{dy} * norm(LoadNumber(arrays.x + at));
      sums[1] += dy;
    }
  }
  for (int i = 0; i < 2; ++i) parts[i][threadIdx.y][threadIdx.x] = sums[i];
  __syncthreads();
  if (threadIdx.y >= 2 || channel >= sizes.channels) return;
  double sum = 0;
  for (int part = 0; part < kLayerChannelParts; ++part)
    sum += parts[threadIdx.y][part][threadIdx.x];
  (threadIdx.y == 0 ? dgamma : dbeta)[channel] = static_cast<float>(sum);
}

// Calls launch(groups) with the number of groups that a lane keeps, a constant as a type.
template <class Launch>
void WithGroups(int channels, const Launch& launch) {
  if (channels <= kFewGroups * kRowGroup * kWarpLanes) {
    launch(std::integral_constant<int, kFewGroups>{});
  } else {
    launch(std::integral_constant<int, kMostGroups>{});
  }
}

int64_t LayerGradBlocksFor(int64_t rows) {
  return std::min<int64_t>(kMostLayerGradBlocks, (rows - 1) / kMostLayerGradWarps + 1);
}

void LaunchKeptGradient(const KernelCall& call, const LayerRows& sizes) {
  const auto blocks = static_cast<unsigned>(LayerGradBlocksFor(sizes.rows));
  const auto partial = static_cast<size_t>(blocks) * static_cast<size_t>(sizes.channels);
  auto* dgamma = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
  float* dbeta = dgamma + partial;
  const std::array types{call.inputs[0].dtype, call.inputs[4].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) {
    using Storage = decltype(type);
    const LayerNormGradArrays<Storage> arrays{As<Storage>(ConstNumbersOf(call.inputs[0])),
                                              call.In<float>(1),
                                              call.In<float>(2),
                                              call.In<float>(3),
                                              As<Storage>(ConstNumbersOf(call.inputs[4])),
                                              As<Storage>(NumbersOf(call.outputs[0]))};
    WithGroups(sizes.channels, [&](auto groups) {
      constexpr int kGroups = decltype(groups)::value;
      LayerNormGradKernel<Storage, kGroups>
          <<<blocks, kLayerGradWarps<Storage, kGroups> * kWarpLanes, 0, call.stream>>>(
              sizes, arrays, dgamma, dbeta);
      THIMBLE_CUDA_LAUNCHED();
    });
  });
  const ColumnSums sums[] = {{dgamma, NumbersOf(call.outputs[1])},
                             {dbeta, NumbersOf(call.outputs[2])}};
  LaunchColumnSums(call.stream, blocks, sizes.channels, sums);
}

// dgamma and dbeta first: dx may overwrite what they read.
void LaunchLongGradient(const KernelCall& call, const LayerRows& sizes) {
  const LayerNormGradArrays<AnyNumber> arrays{ConstNumbersOf(call.inputs[0]),
                                              call.In<float>(1),
                                              call.In<float>(2),
                                              call.In<float>(3),
                                              ConstNumbersOf(call.inputs[4]),
                                              NumbersOf(call.outputs[0])};
  const auto blocks = static_cast<unsigned>((sizes.channels - 1) / kWarpLanes + 1);
  LayerNormChannelsKernel<<<blocks, dim3(kWarpLanes, kLayerChannelParts), 0, call.stream>>>(
      sizes, arrays, call.Out<float>(1), call.Out<float>(2));
  THIMBLE_CUDA_LAUNCHED();
  if (sizes.rows == 0) return;
  LayerNormGradLongKernel<<<static_cast<unsigned>(LayerBlocksFor(sizes.rows)), kLayerThreads, 0,
                            call.stream>>>(sizes, arrays);
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

void LayerNormCuda::Run(const KernelCall& call) {
  const LayerRows sizes = LayerRowsOf(call);
  const int64_t statistics = call.out_shape(1).elements();
  if (statistics == 0) return;
  const auto blocks = static_cast<unsigned>(LayerBlocksFor(statistics));
  if (sizes.channels == 0) {
    EmptyRowsKernel<<<blocks, kLayerThreads, 0, call.stream>>>(statistics, call.Out<float>(1),
                                                               call.Out<float>(2));
    THIMBLE_CUDA_LAUNCHED();
    return;
  }
  const auto arrays = [&](auto type) {
    using Storage = decltype(type);
    return LayerNormArrays<Storage>{
        As<Storage>(ConstNumbersOf(call.inputs[0])), call.In<float>(1),  call.In<float>(2),
        As<Storage>(NumbersOf(call.outputs[0])),     call.Out<float>(1), call.Out<float>(2)};
  };
  if (!AreKept(sizes.channels)) {
    LayerNormLongKernel<<<blocks, kLayerThreads, 0, call.stream>>>(sizes, arrays(AnyNumber{}));
    THIMBLE_CUDA_LAUNCHED();
    return;
  }
  const std::array types{call.inputs[0].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) {
    WithGroups(sizes.channels, [&](auto groups) {
      LayerNormKernel<decltype(type), decltype(groups)::value>
          <<<blocks, kLayerThreads, 0, call.stream>>>(sizes, arrays(type));
      THIMBLE_CUDA_LAUNCHED();
    });
  });
}

size_t LayerNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const Shape& x = call.inputs[0];
  const int64_t channels = x[x.rank() - 1];
  if (x.elements() == 0 || !AreKept(channels)) return 0;
  const auto blocks = static_cast<size_t>(LayerGradBlocksFor(x.elements() / channels));
  return 2 * blocks * static_cast<size_t>(channels) * sizeof(float);
}

void LayerNormGradCuda::Run(const KernelCall& call) {
  const LayerRows sizes = LayerRowsOf(call);
  if (sizes.channels == 0) return;
  if (sizes.rows > 0 && AreKept(sizes.channels)) {
    LaunchKeptGradient(call, sizes);
  } else {
    LaunchLongGradient(call, sizes);
  }
}

}  // namespace thimble
