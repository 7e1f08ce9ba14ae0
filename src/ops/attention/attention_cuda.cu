// A block has up to 64 queries of a head, sixteen for each warp, and goes through the sources 32 at
// a time: scores never leave registers. Sums are relative to the largest score so far.
#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/attention/attention.h"
#include "thimble/ops/attention/head_products.cuh"
#include "thimble/ops/attention/head_rows.cuh"
#include "thimble/ops/attention/wide_heads.h"
#include "thimble/ops/dropout/weight_dropout.cuh"

namespace thimble {
namespace heads {
namespace {

template <class Storage>
struct AttentionArrays {
  InNumbers<Storage> q;    // (B, T, C)
  InNumbers<Storage> k;    // (B, S, C)
  InNumbers<Storage> v;    // (B, S, C)
  const int32_t* lengths;  // (B)
  OutNumbers<Storage> y;   // (B, T, C); may be q
};

// What a warp has summed for its queries: of the lane's two rows.
struct WeightedMeans {
  float largest[2] = {-INFINITY, -INFINITY};
  float sums[2] = {0, 0};  // of exponentials; the lane's share
  PartNumbers y;

  // Replaces the scores of a tile by exponentials, and makes the sums relative to the same score.
  // The factors are what y needs for that.
  __device__ void TakeScores(TileNumbers& scores, float (&factors)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float next = -INFINITY;
#pragma unroll
      for (auto& of_columns : scores) {
        next = fmaxf(next, fmaxf(of_columns[2 * half], of_columns[2 * half + 1]));
      }
      next = fmaxf(largest[half], RowMax(next));
      const float base = next == -INFINITY ? 0 : next;
      factors[half] = exp2f(largest[half] - base);
      largest[half] = next;
      float sum = 0;
#pragma unroll
      for (auto& of_columns : scores) {
#pragma unroll
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          of_columns[j] = exp2f(of_columns[j] - base);
          sum += of_columns[j];
        }
      }
      sums[half] = fmaf(sums[half], factors[half], sum);
    }
  }
  __device__ void Divide() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = 1 / RowSum(sums[half]);
#pragma unroll
      for (auto& of_columns : y) {
        of_columns[2 * half] *= factor;
        of_columns[2 * half + 1] *= factor;
      }
    }
  }
};

// Rows of shared memory: the block's queries, and those of a window of keys and of values.
template <class Storage, Tiles kTiles>
__global__ void __launch_bounds__(kThreadLimit<kTiles>, LeastBlocks<kTiles, Storage>())
    AttentionKernel(HeadSizes sizes, HeadTiling tiling, WeightDraw dropout,
                    AttentionArrays<Storage> arrays) {
  extern __shared__ float shared[];
  if constexpr (kTiles == Tiles::kOne) tiling.whole = true;
  WaitForKernelsBefore();
  const HeadBlock block(tiling, sizes.queries);
  const auto& [b, h] = block.place;
  const HeadWarp warp;
  const int length = arrays.lengths[b];
  const int64_t first = sizes.Query(b, block.first, h);
  auto* queries = reinterpret_cast<SharedNumber<Storage>*>(shared);
  auto* sources = queries + tiling.rows() * tiling.stride;
  LoadRows<Storage>(sizes, tiling, {arrays.q}, first, tiling.rows(), block.count, queries);
  if (!sizes.IsLength(length) || length == 0) {
    WaitForCopies();
    __syncthreads();  // y may be q
    return FillRows<Storage>(sizes, length == 0 ? 0.0F : nanf(""), block.count, arrays.y + first);
  }
  RowWindow<Storage> window{{arrays.k, arrays.v}, sizes.Source(b, 0, h), length, sources};
  const KeptProbabilities kept{
      reinterpret_cast<uint8_t*>(sources + 2 * tiling.window_rows * tiling.stride),
      tiling.window_rows / 8, dropout.draw.scale};
  WeightedMeans means;
  if (kTiles == Tiles::kAny) BeginSums(means.y);
  const int tiles = kTiles == Tiles::kOne ? 1 : (length - 1) / kTileRows + 1;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    const auto at = window.Tile(sizes, tiling, tile, [&](int begin, int rows) {
      kept.Draw(sizes, dropout, block.place, block.first, block.count, begin, rows);
    });
    if (warp.row >= block.count) continue;
    TileNumbers scores;
    MultiplyRows<LowerFirst::kOfA>(queries + warp.row * tiling.stride, at.first, tiling.stride,
                                   tiling.inner, scores);
#pragma unroll
    for (int i = 0; i < kTileRows / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool exists = tile * kTileRows + 8 * i + ColumnOfLane(j) < length;
        scores[i][j] = exists ? sizes.scale_of_exponents() * scores[i][j] : -INFINITY;
      }
    }
    float factors[2];
    means.TakeScores(scores, factors);
    if (dropout.samples != nullptr) {
      kept.OfQueries(warp.row, at.row, [&](int i, int j, float factor) { scores[i][j] *= factor; });
    }
    AddWeighedRows<kSumsOf<kTiles>>(scores, at.second + warp.channel, tiling.stride, factors,
                                    sizes.head_channels - warp.channel, means.y);
  }
  if (warp.row >= block.count) return;
  means.Divide();
  StorePart<Storage>(sizes, tiling, means.y, block.count - warp.row, warp.channel,
                     arrays.y + (first + int64_t{warp.row} * sizes.channels));
}

template <class Storage>
void LaunchAttention(const KernelCall& call, const HeadSizes& sizes) {
  const auto in = [&](size_t input) { return As<Storage>(ConstNumbersOf(call.inputs[input])); };
  const bool aligned = AllAligned16(call.inputs[0].data, call.inputs[1].data, call.inputs[2].data,
                                    call.outputs[0].data);
  HeadTiling tiling(sizes, sizeof(SharedNumber<Storage>), aligned, sizes.queries, sizes.sources);
  tiling.Shrink(1);
  static const bool allowed = AllowShared(AttentionKernel<Storage, Tiles::kOne>) &&
                              AllowShared(AttentionKernel<Storage, Tiles::kAny>);
  static_cast<void>(allowed);
  const auto kernel = tiling.HasOneTile(sizes) ? AttentionKernel<Storage, Tiles::kOne>
                                               : AttentionKernel<Storage, Tiles::kAny>;
  kernel<<<tiling.Blocks(sizes, sizes.queries), tiling.Threads(), tiling.SharedBytes(1),
           call.stream>>>(sizes, tiling, WeightDraw(call, 4),
                          AttentionArrays<Storage>{in(0), in(1), in(2), call.In<int32_t>(3),
                                                   As<Storage>(NumbersOf(call.outputs[0]))});
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace
}  // namespace heads

std::string_view AttentionCuda::Declines(const OpCall& call) { return WideHeadsDecline(call); }

void AttentionCuda::Run(const KernelCall& call) {
  if (call.out_shape(0).elements() == 0) return;
  const AttentionSizes shapes(call.in_shape(0), call.in_shape(1), call.attributes);
  if (NeedsWideHeads(shapes)) return RunWideAttention(call);
  const heads::HeadSizes sizes(shapes);
  const std::array types{call.inputs[0].dtype, call.inputs[1].dtype, call.inputs[2].dtype,
                         call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) { heads::LaunchAttention<decltype(type)>(call, sizes); });
}

}  // namespace thimble
