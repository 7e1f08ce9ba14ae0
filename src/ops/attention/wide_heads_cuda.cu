#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/attention/head_products.cuh"
#include "thimble/ops/attention/head_rows.cuh"
#include "thimble/ops/attention/head_sizes.cuh"
#include "thimble/ops/attention/wide_heads.h"
#include "thimble/ops/dropout/weight_dropout.cuh"

namespace thimble {
namespace heads {
namespace {

using WideInput = InNumbers<AnyNumber>;
using WideOutput = OutNumbers<AnyNumber>;

// The place of a warp's row, a query or a source: neighbouring warps have the same sentence and
// head.
struct HeadRow {
  int64_t b;
  int h, i;

  __device__ HeadRow(const HeadSizes& sizes, int64_t row, int rows_of_head)
      : b(row / rows_of_head / sizes.heads),
        h(static_cast<int>(row / rows_of_head % sizes.heads)),
        i(static_cast<int>(row % rows_of_head)) {}
};

constexpr int kMostHeadWarps = 8;
// That needs no permission.
constexpr size_t kFreeHeadSharedBytes = size_t{48} << 10;
// What every GPU has.
constexpr size_t kMostHeadSharedBytes = size_t{160} << 10;

// How rows are divided among blocks.
struct HeadBlocks {
  int warps;   // of a block
  int floats;  // of a warp, in shared memory

  unsigned Count(int64_t rows) const { return static_cast<unsigned>((rows - 1) / warps + 1); }
  unsigned Threads() const { return static_cast<unsigned>(warps * kWarpLanes); }
  size_t SharedBytes() const { return sizeof(float) * static_cast<size_t>(warps * floats); }
};
HeadBlocks HeadBlocksWith(int floats) {
  const size_t bytes = std::max<size_t>(1, static_cast<size_t>(floats) * sizeof(float));
  const auto fitting = static_cast<int>(kFreeHeadSharedBytes / bytes);
  return {std::clamp(fitting, 1, kMostHeadWarps), floats};
}

__device__ int64_t HeadRowOfWarp() {
  return int64_t{blockIdx.x} * (blockDim.x / kWarpLanes) + WarpOfBlock();
}

// Calls visit(i) for the lane's numbers of `count`.
template <class Visit>
__device__ void ForEachLanes(int count, const Visit& visit) {
  for (int i = static_cast<int>(threadIdx.x) % kWarpLanes; i < count; i += kWarpLanes) visit(i);
}

// The product of two vectors, in all lanes.
template <class A, class B>
__device__ float LaneDot(const A& a, const B& b, int count) {
  float sum = 0;
  ForEachLanes(count, [&](int c) { sum = fmaf(LoadNumber(a + c), LoadNumber(b + c), sum); });
  return WarpSum(sum);
}

// to[c] = the sum over sources of weights[s] * rows[s], where rows(s) is the address of one.
template <class Rows, class Store>
__device__ void WeighSources(const float* weights, int count, int channels, const Rows& rows,
                             const Store& store) {
  ForEachLanes(channels, [&](int c) {
    float sum = 0;
    for (int s = 0; s < count; ++s) sum = fmaf(weights[s], LoadNumber(rows(s) + c), sum);
    store(c, sum);
  });
}

// Replaces scores by probabilities; the log of the sum of their exponentials.
__device__ float SoftmaxOfScores(float* scores, int count) {
  float largest = -INFINITY;
  ForEachLanes(count, [&](int s) { largest = fmaxf(largest, scores[s]); });
  largest = WarpMax(largest);
  float sum = 0;
  ForEachLanes(count, [&](int s) {
    scores[s] = expf(scores[s] - largest);
    sum += scores[s];
  });
  sum = WarpSum(sum);
  ForEachLanes(count, [&](int s) { scores[s] /= sum; });
  __syncwarp();
  return largest + logf(sum);
}

// scores[s] = scale * q . k[s].
template <class Query, class Keys>
__device__ void ScoreSources(const HeadSizes& sizes, const Query& q, const Keys& keys, int count,
                             float* scores) {
  for (int s = 0; s < count; ++s) {
    const float score = sizes.scale * LaneDot(q, keys(s), sizes.head_channels);
    if (threadIdx.x % kWarpLanes == 0) scores[s] = score;
  }
  __syncwarp();
}

// ---- Forward

struct WideArrays {
  WideInput q;             // (B, T, C)
  WideInput k;             // (B, S, C)
  WideInput v;             // (B, S, C)
  const int32_t* lengths;  // (B)
  WideOutput y;            // (B, T, C); may be q
};

__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    WideAttentionKernel(HeadSizes sizes, WeightDraw dropout, WideArrays arrays) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const int64_t row = HeadRowOfWarp();
  if (row >= sizes.query_rows()) return;  // the whole warp
  const HeadRow place(sizes, row, sizes.queries);
  const int length = arrays.lengths[place.b];
  const int64_t query = sizes.Query(place.b, place.i, place.h);
  if (!sizes.IsLength(length) || length == 0) {
    const float fill = length == 0 ? 0.0F : nanf("");
    ForEachLanes(sizes.head_channels, [&](int c) { StoreNumber(fill, arrays.y + (query + c)); });
    return;
  }
  float* scores = shared + WarpOfBlock() * sizes.sources;
  const auto source = [&](int s) { return sizes.Source(place.b, s, place.h); };
  ScoreSources(
      sizes, arrays.q + query, [&](int s) { return arrays.k + source(s); }, length, scores);
  SoftmaxOfScores(scores, length);
  ForEachLanes(length, [&](int s) {
    scores[s] *= dropout.Factor(place.b, sizes.Drawn(place.i, place.h, s));
  });
  __syncwarp();
  WeighSources(
      scores, length, sizes.head_channels, [&](int s) { return arrays.v + source(s); },
      [&](int c, float sum) { StoreNumber(sum, arrays.y + (query + c)); });
}

// ---- Backward

struct WideGradArrays {
  WideInput q, k, v;
  const int32_t* lengths;
  WideInput dy;       // (B, T, C)
  WideOutput dk, dv;  // (B, S, C); may be k and v
};

// What the first pass stores.
struct KeptOfQueries {
  float* log_sums;  // (B, H, T)
  // The mean of the derivatives by probabilities, weighted by these, is subtracted in two steps
  // (see softmax_formula.h): (B, H, T) each.
  float* means;
  float* errors;
  float* dq;  // (B, T, C)

  // Called by all lanes of a query's warp.
  __device__ void Store(int64_t at, float log_sum, float mean, float error) const {
    if (threadIdx.x % kWarpLanes != 0) return;
    log_sums[at] = log_sum;
    means[at] = mean;
    errors[at] = error;
  }
};

__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    WideQueryGradientKernel(HeadSizes sizes, WeightDraw dropout, WideGradArrays arrays,
                            KeptOfQueries kept) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const int64_t row = HeadRowOfWarp();
  if (row >= sizes.query_rows()) return;  // the whole warp
  const HeadRow place(sizes, row, sizes.queries);
  const int length = arrays.lengths[place.b];
  const int64_t query = sizes.Query(place.b, place.i, place.h);
  const int64_t at = sizes.Kept(place.b, place.h, place.i);
  if (!sizes.IsLength(length) || length == 0) {
    const float fill = length == 0 ? 0.0F : nanf("");
    ForEachLanes(sizes.head_channels, [&](int c) { kept.dq[query + c] = fill; });
    kept.Store(at, 0, 0, 0);
    return;
  }
  float* scores = shared + WarpOfBlock() * 2 * sizes.sources;
  float* slopes = scores + sizes.sources;
  const auto source = [&](int s) { return sizes.Source(place.b, s, place.h); };
  ScoreSources(
      sizes, arrays.q + query, [&](int s) { return arrays.k + source(s); }, length, scores);
  const float log_sum = SoftmaxOfScores(scores, length);
  for (int s = 0; s < length; ++s) {
    const float product = LaneDot(arrays.dy + query, arrays.v + source(s), sizes.head_channels);
    if (threadIdx.x % kWarpLanes == 0) slopes[s] = product;
  }
  __syncwarp();
  float mean = 0;
  ForEachLanes(length, [&](int s) {
    slopes[s] *= dropout.Factor(place.b, sizes.Drawn(place.i, place.h, s));
    mean = fmaf(scores[s], slopes[s], mean);
  });
  mean = WarpSum(mean);
  float error = 0;
  ForEachLanes(length, [&](int s) {
    slopes[s] -= mean;
    error = fmaf(scores[s], slopes[s], error);
  });
  error = WarpSum(error);
  ForEachLanes(length, [&](int s) { slopes[s] = sizes.scale * scores[s] * (slopes[s] - error); });
  __syncwarp();
  WeighSources(
      slopes, length, sizes.head_channels, [&](int s) { return arrays.k + source(s); },
      [&](int c, float sum) { kept.dq[query + c] = sum; });
  kept.Store(at, log_sum, mean, error);
}

__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    WideSourceGradientKernel(HeadSizes sizes, WeightDraw dropout, WideGradArrays arrays,
                             KeptOfQueries kept) {
  extern __shared__ float shared[];
  WaitForKernelsBefore();
  const int64_t row = HeadRowOfWarp();
  if (row >= sizes.source_rows()) return;  // the whole warp
  const HeadRow place(sizes, row, sizes.sources);
  const int length = arrays.lengths[place.b];
  const int64_t source = sizes.Source(place.b, place.i, place.h);
  float* dk = shared + WarpOfBlock() * 2 * sizes.head_channels;
  float* dv = dk + sizes.head_channels;
  const float fill = sizes.IsLength(length) ? 0.0F : nanf("");
  ForEachLanes(sizes.head_channels, [&](int c) { dk[c] = dv[c] = fill; });
  const bool has_queries = sizes.IsLength(length) && place.i < length;
  for (int t = 0; t < sizes.queries && has_queries; ++t) {
    const int64_t query = sizes.Query(place.b, t, place.h);
    const int64_t at = sizes.Kept(place.b, place.h, t);
    const float score =
        sizes.scale * LaneDot(arrays.q + query, arrays.k + source, sizes.head_channels);
    const float probability = expf(score - kept.log_sums[at]);
    const float factor = dropout.Factor(place.b, sizes.Drawn(t, place.h, place.i));
    const float slope = factor * LaneDot(arrays.dy + query, arrays.v + source, sizes.head_channels);
    const float of_score = sizes.scale * probability * (slope - kept.means[at] - kept.errors[at]);
    ForEachLanes(sizes.head_channels, [&](int c) {
      dk[c] = fmaf(of_score, LoadNumber(arrays.q + (query + c)), dk[c]);
      dv[c] = fmaf(probability * factor, LoadNumber(arrays.dy + (query + c)), dv[c]);
    });
  }
  ForEachLanes(sizes.head_channels, [&](int c) {
    StoreNumber(dk[c], arrays.dk + (source + c));
    StoreNumber(dv[c], arrays.dv + (source + c));
  });
}

struct StoreWideQueryGradient {
  const float* from;
  WideOutput to;
  __device__ void operator()(int64_t i) const { StoreNumber(from[i], to + i); }
};

// ---- Launches

template <class Kernel>
bool AllowWideShared(Kernel kernel) {
  THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kMostHeadSharedBytes)));
  return true;
}

}  // namespace
}  // namespace heads

bool NeedsWideHeads(const AttentionSizes& sizes) {
  constexpr int64_t kMostBlocks = 65535;  // of a grid, in y and z
  const int64_t strips = std::max(sizes.queries, sizes.sources) / heads::kStripRows + 1;
  return sizes.head_channels() > heads::kMostHeadChannels || sizes.heads > kMostBlocks ||
         strips > kMostBlocks;
}

std::string_view WideHeadsDecline(const OpCall& call) {
  const AttentionSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  if (!NeedsWideHeads(sizes)) return "";
  const int64_t floats = 2 * std::max(sizes.sources, sizes.head_channels());
  return floats * static_cast<int64_t>(sizeof(float)) <=
                 static_cast<int64_t>(heads::kMostHeadSharedBytes)
             ? ""
             : "too many sources or channels of a head";
}

void RunWideAttention(const KernelCall& call) {
  using namespace heads;  // NOLINT(google-build-using-namespace)
  static const bool allowed = AllowWideShared(WideAttentionKernel);
  static_cast<void>(allowed);
  const HeadSizes sizes(call);
  const auto in = [&](size_t input) { return ConstNumbersOf(call.inputs[input]); };
  const HeadBlocks blocks = HeadBlocksWith(sizes.sources);
  WideAttentionKernel<<<blocks.Count(sizes.query_rows()), blocks.Threads(), blocks.SharedBytes(),
                        call.stream>>>(
      sizes, WeightDraw(call, 4),
      WideArrays{in(0), in(1), in(2), call.In<int32_t>(3), NumbersOf(call.outputs[0])});
  THIMBLE_CUDA_LAUNCHED();
}

void RunWideAttentionGrad(const KernelCall& call) {
  using namespace heads;  // NOLINT(google-build-using-namespace)
  static const bool allowed =
      AllowWideShared(WideQueryGradientKernel) && AllowWideShared(WideSourceGradientKernel);
  static_cast<void>(allowed);
  const HeadSizes sizes(call);
  auto* log_sums = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
  const int64_t rows = sizes.query_rows();
  const KeptOfQueries kept{log_sums, log_sums + rows, log_sums + 2 * rows, log_sums + 3 * rows};
  const auto in = [&](size_t input) { return ConstNumbersOf(call.inputs[input]); };
  const auto out = [&](size_t output) { return NumbersOf(call.outputs[output]); };
  const WideGradArrays arrays{in(0), in(1), in(2), call.In<int32_t>(3), in(4), out(1), out(2)};
  const WeightDraw dropout(call, 5);
  if (sizes.query_rows() > 0) {
    const HeadBlocks blocks = HeadBlocksWith(2 * sizes.sources);
    WideQueryGradientKernel<<<blocks.Count(sizes.query_rows()), blocks.Threads(),
                              blocks.SharedBytes(), call.stream>>>(sizes, dropout, arrays, kept);
    THIMBLE_CUDA_LAUNCHED();
  }
  if (sizes.source_rows() > 0) {
    const HeadBlocks blocks = HeadBlocksWith(2 * sizes.head_channels);
    WideSourceGradientKernel<<<blocks.Count(sizes.source_rows()), blocks.Threads(),
                               blocks.SharedBytes(), call.stream>>>(sizes, dropout, arrays, kept);
    THIMBLE_CUDA_LAUNCHED();
  }
  LaunchElements(call.stream, call.out_shape(0).elements(),
                 StoreWideQueryGradient{kept.dq, NumbersOf(call.outputs[0])});
}

}  // namespace thimble
