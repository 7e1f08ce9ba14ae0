// A warp works on a query of a head, or in backward also on a source of one. What the lanes of a
// warp share is in shared memory: a score for each source, or the sums of a source's gradients.
//
// Backward has two passes. The first one, over queries, stores what the second needs of their
// softmax, and dq in scratch, because the second one reads q, and dq may overwrite it.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/attention/attention.h"
#include "thimble/ops/attention/sizes.h"
#include "thimble/ops/dropout/weight_dropout.cuh"

namespace thimble {
namespace {

// AttentionSizes as GPU code takes them.
struct HeadSizes {
  int64_t batch;
  int queries, sources, channels, heads, head_channels;
  float scale;

  explicit HeadSizes(const AttentionSizes& sizes)
      : batch(sizes.batch),
        queries(static_cast<int>(sizes.queries)),
        sources(static_cast<int>(sizes.sources)),
        channels(static_cast<int>(sizes.channels)),
        heads(static_cast<int>(sizes.heads)),
        head_channels(static_cast<int>(sizes.head_channels())),
        scale(static_cast<float>(sizes.scale)) {}

  __host__ __device__ int64_t query_rows() const { return batch * queries * heads; }
  __host__ __device__ int64_t source_rows() const { return batch * sources * heads; }
  __device__ bool IsLength(int length) const { return length >= 0 && length <= sources; }
  __device__ int64_t Query(int64_t b, int t, int h) const {
    return (b * queries + t) * channels + h * head_channels;
  }
  __device__ int64_t Source(int64_t b, int s, int h) const {
    return (b * sources + s) * channels + h * head_channels;
  }
  // Index of a probability within its sample.
  __device__ int64_t Drawn(int t, int h, int s) const {
    return (int64_t{t} * heads + h) * kMaxDroppedSources + s;
  }
  // Of a query's numbers in scratch, (B, H, T).
  __device__ int64_t Kept(int64_t b, int h, int t) const { return (b * heads + h) * queries + t; }
};

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

__device__ int WarpOfBlock() { return static_cast<int>(threadIdx.x) / kWarpLanes; }
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
__device__ void WeighRows(const float* weights, int count, int channels, const Rows& rows,
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

template <class Storage>
struct AttentionArrays {
  InNumbers<Storage> q;    // (B, T, C)
  InNumbers<Storage> k;    // (B, S, C)
  InNumbers<Storage> v;    // (B, S, C)
  const int32_t* lengths;  // (B)
  OutNumbers<Storage> y;   // (B, T, C); may be q
};

template <class Storage>
__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    AttentionKernel(HeadSizes sizes, WeightDraw dropout, AttentionArrays<Storage> arrays) {
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
  WeighRows(
      scores, length, sizes.head_channels, [&](int s) { return arrays.v + source(s); },
      [&](int c, float sum) { StoreNumber(sum, arrays.y + (query + c)); });
}

// ---- Backward

template <class Storage>
struct AttentionGradArrays {
  InNumbers<Storage> q, k, v;
  const int32_t* lengths;
  InNumbers<Storage> dy;       // (B, T, C)
  OutNumbers<Storage> dk, dv;  // (B, S, C); may be k and v
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

template <class Storage>
__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    QueryGradientKernel(HeadSizes sizes, WeightDraw dropout, AttentionGradArrays<Storage> arrays,
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
  WeighRows(
      slopes, length, sizes.head_channels, [&](int s) { return arrays.k + source(s); },
      [&](int c, float sum) { kept.dq[query + c] = sum; });
  kept.Store(at, log_sum, mean, error);
}

template <class Storage>
__global__ void __launch_bounds__(kMostHeadWarps* kWarpLanes)
    SourceGradientKernel(HeadSizes sizes, WeightDraw dropout, AttentionGradArrays<Storage> arrays,
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

struct StoreQueryGradient {
  const float* from;
  OutNumbers<AnyNumber> to;
  __device__ void operator()(int64_t i) const { StoreNumber(from[i], to + i); }
};

// ---- Launches

HeadSizes HeadSizesOf(const KernelCall& call) {
  return HeadSizes(AttentionSizes(call.in_shape(0), call.in_shape(1), call.attributes));
}

template <class Kernel>
void AllowShared(Kernel kernel) {
  THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kMostHeadSharedBytes)));
}

std::string_view DeclinesHeads(const OpCall& call) {
  const AttentionSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  const int64_t floats = 2 * std::max(sizes.sources, sizes.head_channels());
  return floats * static_cast<int64_t>(sizeof(float)) <= static_cast<int64_t>(kMostHeadSharedBytes)
             ? ""
             : "too many sources or channels of a head";
}

template <class Storage>
void LaunchHeadGradient(const KernelCall& call, const HeadSizes& sizes, const KeptOfQueries& kept) {
  const auto in = [&](size_t input) { return As<Storage>(ConstNumbersOf(call.inputs[input])); };
  const AttentionGradArrays<Storage> arrays{in(0),
                                            in(1),
                                            in(2),
                                            call.In<int32_t>(3),
                                            in(4),
                                            As<Storage>(NumbersOf(call.outputs[1])),
                                            As<Storage>(NumbersOf(call.outputs[2]))};
  static const bool prepared = [] {
    AllowShared(QueryGradientKernel<Storage>);
    AllowShared(SourceGradientKernel<Storage>);
    return true;
  }();
  static_cast<void>(prepared);
  const WeightDraw dropout(call, 5);
  if (sizes.query_rows() > 0) {
    const HeadBlocks blocks = HeadBlocksWith(2 * sizes.sources);
    QueryGradientKernel<Storage>
        <<<blocks.Count(sizes.query_rows()), blocks.Threads(), blocks.SharedBytes(), call.stream>>>(
            sizes, dropout, arrays, kept);
    THIMBLE_CUDA_LAUNCHED();
  }
  if (sizes.source_rows() > 0) {
    const HeadBlocks blocks = HeadBlocksWith(2 * sizes.head_channels);
    SourceGradientKernel<Storage>
        <<<blocks.Count(sizes.source_rows()), blocks.Threads(), blocks.SharedBytes(),
           call.stream>>>(sizes, dropout, arrays, kept);
    THIMBLE_CUDA_LAUNCHED();
  }
}

}  // namespace

std::string_view AttentionCuda::Declines(const OpCall& call) { return DeclinesHeads(call); }

void AttentionCuda::Run(const KernelCall& call) {
  if (call.out_shape(0).elements() == 0) return;
  const HeadSizes sizes = HeadSizesOf(call);
  const HeadBlocks blocks = HeadBlocksWith(sizes.sources);
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype, call.inputs[2].dtype,
                         call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) {
    using Storage = decltype(type);
    const auto in = [&](size_t input) { return As<Storage>(ConstNumbersOf(call.inputs[input])); };
    static const bool prepared = (AllowShared(AttentionKernel<Storage>), true);
    static_cast<void>(prepared);
    AttentionKernel<Storage>
        <<<blocks.Count(sizes.query_rows()), blocks.Threads(), blocks.SharedBytes(), call.stream>>>(
            sizes, WeightDraw(call, 4),
            AttentionArrays<Storage>{in(0), in(1), in(2), call.In<int32_t>(3),
                                     As<Storage>(NumbersOf(call.outputs[0]))});
    THIMBLE_CUDA_LAUNCHED();
  });
}

std::string_view AttentionGradCuda::Declines(const OpCall& call) { return DeclinesHeads(call); }

size_t AttentionGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const Shape& q = call.inputs[0];
  const int64_t rows = q[0] * q[1] * call.attributes.Int("heads");
  return static_cast<size_t>(3 * rows + q.elements()) * sizeof(float);
}

void AttentionGradCuda::Run(const KernelCall& call) {
  const HeadSizes sizes = HeadSizesOf(call);
  auto* log_sums = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
  const int64_t rows = sizes.query_rows();
  const KeptOfQueries kept{log_sums, log_sums + rows, log_sums + 2 * rows, log_sums + 3 * rows};
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype,  call.inputs[2].dtype,
                         call.inputs[4].dtype, call.outputs[1].dtype, call.outputs[2].dtype};
  WithCommonStorage(types,
                    [&](auto type) { LaunchHeadGradient<decltype(type)>(call, sizes, kept); });
  LaunchElements(call.stream, call.out_shape(0).elements(),
                 StoreQueryGradient{kept.dq, NumbersOf(call.outputs[0])});
}

}  // namespace thimble
