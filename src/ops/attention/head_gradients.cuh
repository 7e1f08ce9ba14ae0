// What warps sum up in backward. A warp first has sixteen queries: it sums up their softmax, going
// through the sources 32 at a time, and then dq. What is then known of their softmax lets a warp
// with sixteen sources sum up dk and dv, going through the queries. Scores are multiplied again
// rather than exchanged.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/ops/attention/head_products.cuh"
#include "thimble/ops/attention/head_rows.cuh"
#include "thimble/ops/attention/head_sizes.cuh"

namespace thimble::heads {

// What is known of the softmax of queries, arrays with this distance: the binary logarithm of the
// sum of exponentials; the derivative by the most likely probability, the reference; and the mean,
// weighted by probabilities, of the distances of the derivatives from it. Distances keep their
// digits if one probability is nearly 1 (see softmax_formula.h).
struct SoftmaxArrays {
  static constexpr int kArrays = 3;

  float* numbers;
  int64_t distance;

  // With these all probabilities are zero.
  static __device__ float OfNoQuery(int array) { return array == 0 ? INFINITY : 0.0F; }

  // Fills queries that do not exist, or whose sentence has no sources. Called by all threads.
  __device__ void Fill(int64_t first, int count) const {
#pragma unroll 1
    for (int row = ThreadOfBlock(); row < count; row += ThreadsOfBlock()) {
#pragma unroll 1
      for (int array = 0; array < kArrays; ++array) {
        numbers[array * distance + first + row] = OfNoQuery(array);
      }
    }
  }
  // Copies queries from `first` on to the first rows of others, which have more rows than exist.
  // Called by all threads.
  __device__ void CopyTo(const SoftmaxArrays& others, int64_t first, int existing, int rows) const {
#pragma unroll 1
    for (int row = ThreadOfBlock(); row < rows; row += ThreadsOfBlock()) {
#pragma unroll 1
      for (int array = 0; array < kArrays; ++array) {
        others.numbers[array * others.distance + row] =
            row < existing ? numbers[array * distance + first + row] : OfNoQuery(array);
      }
    }
  }
};

// The same of the lane's two queries, and what it is made from.
struct SoftmaxOfQueries {
  float largest[2] = {-INFINITY, -INFINITY};
  float references[2] = {0, 0};
  float sums[2] = {0, 0};   // of exponentials relative to the largest score; the lane's share
  float means[2] = {0, 0};  // those weighted with distances from the reference
  float log_sums[2];

  __device__ void Take(const TileNumbers& scores, const TileNumbers& slopes) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float next = -INFINITY;
#pragma unroll
      for (auto& of_columns : scores) {
        next = fmaxf(next, fmaxf(of_columns[2 * half], of_columns[2 * half + 1]));
      }
      next = RowMax(next);
      float reference = -INFINITY;
      ForEach(half, [&](int i, int j) {
        if (scores[i][j] == next) reference = fmaxf(reference, slopes[i][j]);
      });
      reference = RowMax(reference);
      const bool is_larger = next > largest[half];
      reference = is_larger ? reference : references[half];
      next = is_larger ? next : largest[half];
      const float base = next == -INFINITY ? 0 : next;
      float sum = 0;
      float mean = 0;
      ForEach(half, [&](int i, int j) {
        const float exponential = exp2f(scores[i][j] - base);
        sum += exponential;
        mean = fmaf(exponential, slopes[i][j] - reference, mean);
      });
      const float factor = exp2f(largest[half] - base);
      const float moved = fmaf(sums[half], references[half] - reference, means[half]);
      means[half] = fmaf(moved, factor, mean);
      sums[half] = fmaf(sums[half], factor, sum);
      largest[half] = next;
      references[half] = reference;
    }
  }
  __device__ void Finish() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float sum = RowSum(sums[half]);
      means[half] = RowSum(means[half]) / sum;
      log_sums[half] = largest[half] + log2f(sum);
    }
  }
  // The derivatives by the products of q and k.
  __device__ void ToGradients(float scale, const TileNumbers& scores, TileNumbers& slopes) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      ForEach(half, [&](int i, int j) {
        const float probability = exp2f(scores[i][j] - log_sums[half]);
        slopes[i][j] = scale * probability * (slopes[i][j] - references[half] - means[half]);
      });
    }
  }
  // Stores what is known of `count` queries of a strip, from row `first` of the arrays on.
  __device__ void Store(const SoftmaxArrays& to, int64_t first, int count) const {
    if (LaneOfWarp() % 4 != 0) return;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = RowOfLane(2 * half);
      if (row >= count) continue;
      float* at = to.numbers + (first + row);
      at[0] = log_sums[half];
      at[to.distance] = references[half];
      at[2 * to.distance] = means[half];
    }
  }

 private:
  template <class Visit>
  static __device__ void ForEach(int half, const Visit& visit) {
#pragma unroll
    for (int i = 0; i < kTileRows / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) visit(i, 2 * half + j);
    }
  }
};

// The derivatives by probabilities must have the same bits for queries and for sources: if one
// probability is nearly 1, most digits of what remains come from their last ones.
inline constexpr auto kOfQueries = LowerFirst::kOfA;
inline constexpr auto kOfSources = LowerFirst::kOfB;

// What all warps of a block use.
struct HeadContext {
  const HeadSizes& sizes;
  const HeadTiling& tiling;
  bool drops;
  KeptProbabilities kept;
  int length;
  // With one tile: where a warp's probabilities wait for dk while it sums up dv, which would take
  // too many registers. The lane's share is apart by kWarpLanes.
  float4* waiting = nullptr;

  // Calls visit(i, j) for the numbers that a lane has of a strip and a tile.
  template <class Visit>
  __device__ static void ForEachNumber(const Visit& visit) {
#pragma unroll
    for (int i = 0; i < kTileRows / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) visit(i, j);
    }
  }
};

// dq of a warp's queries, of which `count` exist, and what is known of their softmax; `q` and `dy`
// are in shared memory. tile_at(i) gives keys and values from row 32 * i on. All warps of a block
// call this; one without queries only takes part in loading tiles.
template <class Storage, Tiles kTiles, class Tile>
__device__ void SumQueryGradients(const HeadContext& context, const HeadWarp& warp, int count,
                                  const SharedNumber<Storage>* q, const SharedNumber<Storage>* dy,
                                  Tile&& tile_at, SoftmaxOfQueries& softmax, PartNumbers& dq) {
  const auto& [sizes, tiling, drops, kept, length, waiting] = context;
  constexpr int kUnrolled = kTiles == Tiles::kOne ? 2 : 1;
  const int tiles = kTiles == Tiles::kOne ? 1 : (length - 1) / kTileRows + 1;
  TileNumbers scores;
  TileNumbers slopes;
  if (kTiles == Tiles::kAny) BeginSums(dq);
    // Softmax first.
#pragma unroll kUnrolled
  for (int step = 0; step < 2 * tiles; ++step) {
    const bool sums_up = step >= tiles;
    const int i = sums_up ? step - tiles : step;
    const HeadTile<Storage> tile = tile_at(i);
    if (count <= 0) continue;
    if (!sums_up || tiles > 1) {
      MultiplyRows<kOfQueries>(q, tile.first, tiling.stride, tiling.inner, scores);
      MultiplyRows<kOfQueries>(dy, tile.second, tiling.stride, tiling.inner, slopes);
      HeadContext::ForEachNumber([&](int n, int j) {
        const bool is_source = i * kTileRows + 8 * n + ColumnOfLane(j) < length;
        scores[n][j] = is_source ? sizes.scale_of_exponents() * scores[n][j] : -INFINITY;
      });
      if (drops) {
        kept.OfQueries(warp.row, tile.row,
                       [&](int n, int j, float factor) { slopes[n][j] *= factor; });
      }
    }
    if (!sums_up) {
      softmax.Take(scores, slopes);
      if (step == tiles - 1) softmax.Finish();
      continue;
    }
    softmax.ToGradients(sizes.scale, scores, slopes);
    AddWeighedRows<kSumsOf<kTiles>>(slopes, tile.first + warp.channel, tiling.stride, {1, 1},
                                    sizes.head_channels - warp.channel, dq);
    // The next step multiplies again: no registers hold these until then.
    HeadContext::ForEachNumber([&](int n, int j) { scores[n][j] = slopes[n][j] = 0; });
  }
}

// dv and then dk of a warp's sources, of which `count` exist, are passed to store(sums, is_dk); `k`
// and `v` are in shared memory. tile_at(i) gives queries and dy from row 32 * i on, of which
// `softmax` has the same rows. Requires queries. All warps of a block call this; one without
// sources only takes part in loading tiles.
template <class Storage, Tiles kTiles, class Tile, class Store>
__device__ void SumSourceGradients(const HeadContext& context, const HeadWarp& warp, int count,
                                   const SharedNumber<Storage>* k, const SharedNumber<Storage>* v,
                                   Tile&& tile_at, const SoftmaxArrays& softmax,
                                   const Store& store) {
  const auto& [sizes, tiling, drops, kept, length, waiting] = context;
  constexpr int kUnrolled = kTiles == Tiles::kOne ? 2 : 1;
  const int tiles = kTiles == Tiles::kOne ? 1 : (sizes.queries - 1) / kTileRows + 1;
  TileNumbers probabilities;
  PartNumbers sums;
#pragma unroll kUnrolled
  for (int step = 0; step < 2 * tiles; ++step) {
    const bool is_dk = step >= tiles;
    const HeadTile<Storage> tile = tile_at(is_dk ? step - tiles : step);
    if (count <= 0) continue;
    const auto known = [&](int array, int n) {
      return *reinterpret_cast<const float2*>(softmax.numbers + array * softmax.distance +
                                              tile.row + 8 * n + ColumnOfLane(0));
    };
    if (!is_dk || tiles > 1) {
      MultiplyRows<kOfSources>(k, tile.first, tiling.stride, tiling.inner, probabilities);
      HeadContext::ForEachNumber([&](int n, int j) {
        const float2 log_sums = known(0, n);
        probabilities[n][j] = exp2f(sizes.scale_of_exponents() * probabilities[n][j] -
                                    (j % 2 == 0 ? log_sums.x : log_sums.y));
      });
    }
    if (kTiles == Tiles::kOne && !is_dk) {
#pragma unroll
      for (int n = 0; n < kTileRows / 8; ++n) {
        const float(&of_lane)[4] = probabilities[n];
        waiting[n * kWarpLanes + LaneOfWarp()] =
            make_float4(of_lane[0], of_lane[1], of_lane[2], of_lane[3]);
      }
    }
    TileNumbers weights;
    if (is_dk) {
      MultiplyRows<kOfSources>(v, tile.second, tiling.stride, tiling.inner, weights);
    } else {
      HeadContext::ForEachNumber([&](int n, int j) { weights[n][j] = probabilities[n][j]; });
    }
    if (drops) {
      kept.OfSources(warp.row, tile.row,
                     [&](int n, int j, float factor) { weights[n][j] *= factor; });
    }
    if (is_dk) {
      if constexpr (kTiles == Tiles::kOne) {
#pragma unroll
        for (int n = 0; n < kTileRows / 8; ++n) {
          const float4 waited = waiting[n * kWarpLanes + LaneOfWarp()];
          probabilities[n][0] = waited.x;
          probabilities[n][1] = waited.y;
          probabilities[n][2] = waited.z;
          probabilities[n][3] = waited.w;
        }
      }
      HeadContext::ForEachNumber([&](int n, int j) {
        const float2 references = known(1, n);
        const float2 means = known(2, n);
        const float distance = weights[n][j] - (j % 2 == 0 ? references.x : references.y);
        weights[n][j] =
            sizes.scale * probabilities[n][j] * (distance - (j % 2 == 0 ? means.x : means.y));
      });
    }
    if (kTiles == Tiles::kAny && step % tiles == 0) BeginSums(sums);
    AddWeighedRows<kSumsOf<kTiles>>(weights, (is_dk ? tile.first : tile.second) + warp.channel,
                                    tiling.stride, {1, 1}, sizes.head_channels - warp.channel,
                                    sums);
    if (step % tiles == tiles - 1) store(sums, is_dk);
  }
}

}  // namespace thimble::heads
