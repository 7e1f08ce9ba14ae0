// How the positions and channels of a dynamic convolution are divided among the blocks of a kernel,
// and what a block does with its part.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/graph/kernel.h"
#include "thimble/ops/dynamic_conv/head_rows.cuh"
#include "thimble/ops/dynamic_conv/sizes.h"
#include "thimble/ops/dynamic_conv/weight_band.cuh"

namespace thimble {

// What every GPU has.
constexpr size_t kMostTapSharedBytes = size_t{160} << 10;
// Threads of a block at most, and blocks of a multiprocessor at least: 160 sentences of 25 tokens
// in four heads of 128 channels are then under way at once.
constexpr int kMostTapThreads = 224;
constexpr int kTapBlocks = 5;
// Of kernels whose blocks have several tiles (ConvPlan), which need more registers.
template <bool kWalks>
constexpr int kConvBlocks = kWalks ? 4 : kTapBlocks;
// Of a grid, in all dimensions but the first.
constexpr int64_t kMostGridBlocks = 65535;

inline int PartsOfSize(int number, int size) { return (number + size - 1) / size; }
// The next multiple of a unit.
inline int WholeMultiple(int number, int unit) { return PartsOfSize(number, unit) * unit; }

// Positions of tiles that are nearly equal, at most `most` each.
inline int TilePositions(int positions, int most) {
  const int tiles = std::max(1, PartsOfSize(positions, most));
  return std::max(kBandResults, WholeMultiple(PartsOfSize(positions, tiles), kBandResults));
}

inline size_t RowBytes(int chunk, size_t element_bytes) {
  return static_cast<size_t>(chunk) * element_bytes + kRowGapBytes;
}
inline size_t FloatBytes(int count) { return static_cast<size_t>(count) * sizeof(float); }

// Positions whose results the threads of a block compute at once, at most.
inline int PositionsAtOnce(int chunk) {
  return kMostTapThreads * kBandResults * kBandChannels / chunk;
}
// As few threads as do it as fast. Softmax uses warps, and at least so many threads.
inline unsigned TapThreads(int tile, int chunk) {
  constexpr int kLeastThreads = 128;
  const int times = PartsOfSize(tile, PositionsAtOnce(chunk));
  const int groups = PartsOfSize(tile / kBandResults, times);
  const int threads = WholeMultiple(groups * (chunk / kBandChannels), kWarpLanes);
  return static_cast<unsigned>(std::max(kLeastThreads, threads));
}

// Of both kernels.
inline std::string_view DeclinesTaps(const OpCall& call) {
  const DynamicConvSizes sizes(call.inputs[0], call.inputs[1], call.attributes);
  // Their weights and rows must fit into shared memory.
  constexpr int64_t kMostTaps = 896;
  if (sizes.taps > kMostTaps) return "too many taps";
  // Dimensions of a grid with the smallest tiles and chunks. Then distances within what a block has
  // fit 32 bits.
  if (sizes.positions > kMostGridBlocks * kBandResults) return "too many positions";
  const int64_t chunks = (sizes.head_channels() + kLeastChunk - 1) / kLeastChunk;
  constexpr int64_t kMostLogits = 1 << 23;  // of a position
  if (sizes.heads * sizes.taps > kMostLogits) return "too many taps of all heads";
  return sizes.heads * std::max<int64_t>(1, chunks) <= kMostGridBlocks ? "" : "too many heads";
}

inline TapSizes TapSizesOf(const KernelCall& call) {
  return TapSizes(DynamicConvSizes(call.in_shape(0), call.in_shape(1), call.attributes));
}

// Whether rows of these tensors can be copied in groups of 16 bytes.
template <class Storage, class... Views>
bool RowsAreAligned(const TapSizes& sizes, const Views&... views) {
  const auto of_group = kCopiedBytes / static_cast<int>(sizeof(RowElement<Storage>));
  return !std::is_same_v<Storage, AnyNumber> && AllAligned16(views.data...) &&
         sizes.channels % of_group == 0 && sizes.head_channels % of_group == 0;
}

// Lets a kernel use as much shared memory as plans take. Returns true.
template <class... Parameters>
bool PermitTapSharedBytes(void (*kernel)(Parameters...)) {
  THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kMostTapSharedBytes)));
  return true;
}

// ---- Blocks are sentences times heads times chunks of their channels times parts of their
// positions. A block has the rows of a tile and of the taps around it in shared memory before the
// tile's results are stored. If results overwrite the source, a block has all positions of its
// channels, a tile after the other.

struct ConvPlan {
  int chunk;             // channels
  int chunks = 1;        // of a head
  int tile = 0;          // positions
  int part = 0;          // positions of a block: some tiles
  bool whole = false;    // the sentence is one tile: only its own rows are needed
  int rows = 0;          // in shared memory
  int more_floats = 0;   // behind the weights
  bool aligned = false;  // see StageRows

  size_t SharedBytes(int taps, size_t element_bytes) const {
    return static_cast<size_t>(rows) * RowBytes(chunk, element_bytes) +
           FloatBytes(BandFloats(tile, taps) + more_floats);
  }
  dim3 Blocks(const TapSizes& sizes) const {
    return {static_cast<unsigned>(sizes.batch), static_cast<unsigned>(sizes.heads * chunks),
            static_cast<unsigned>(PartsOfSize(sizes.positions, part))};
  }
  // Whether a block has more than one tile.
  bool walks() const { return part > tile; }
};

inline ConvPlan ConvPlanFor(const TapSizes& sizes, size_t element_bytes,
                            int more_floats_of_position, bool in_place) {
  ConvPlan plan{.chunk = ChunkFor(sizes.head_channels)};
  // Then only blocks with other channels work in parallel.
  while (in_place && plan.chunk > kLeastChunk && PositionsAtOnce(plan.chunk) < sizes.positions) {
    plan.chunk /= 2;
  }
  plan.tile = TilePositions(sizes.positions, PositionsAtOnce(plan.chunk));
  const auto fits = [&] {
    plan.whole = plan.tile >= sizes.positions;
    plan.rows = plan.whole ? sizes.positions : plan.tile + sizes.taps - 1;
    plan.more_floats = plan.tile * more_floats_of_position;
    return plan.SharedBytes(sizes.taps, element_bytes) <= kMostTapSharedBytes;
  };
  while (!fits() && plan.tile > kBandResults) {
    if (plan.chunk > kLeastChunk) {
      plan.chunk /= 2;
    } else {
      plan.tile = WholeMultiple(plan.tile / 2, kBandResults);
    }
  }
  plan.chunks = std::max(1, PartsOfSize(sizes.head_channels, plan.chunk));
  plan.part = in_place ? WholeMultiple(sizes.positions, plan.tile) : plan.tile;
  return plan;
}

// What the grid says about a block.
struct ConvBlock {
  int b, h, chunk, first;  // `first`: position

  __device__ explicit ConvBlock(const ConvPlan& plan)
      : b(static_cast<int>(blockIdx.x)),
        h(static_cast<int>(blockIdx.y)),
        chunk(0),
        first(static_cast<int>(blockIdx.z) * plan.part) {
    if (plan.chunks == 1) return;
    chunk = h % plan.chunks;
    h /= plan.chunks;
  }
};

// Rows [tile, tile + K - 1) become rows [0, K - 1): the next tile needs them too, and perhaps they
// were overwritten in memory.
template <class Element>
__device__ void KeepLastRows(const ConvPlan& plan, int taps, Element* rows) {
  auto* to = reinterpret_cast<uint4*>(rows);
  const int words_of_row = RowPitch<Element>(plan.chunk) * static_cast<int>(sizeof(Element)) /
                           static_cast<int>(sizeof(uint4));
  const int distance = plan.tile * words_of_row;
  const int count = (taps - 1) * words_of_row;
  // As many at once as do not overlap.
  for (int first = 0; first < count; first += distance) {
    const int end = min(count, first + distance);
    for (int i = first + static_cast<int>(threadIdx.x); i < end;
         i += static_cast<int>(blockDim.x)) {
      to[i] = to[i + distance];
    }
    __syncthreads();
  }
}

template <class Storage>
struct ConvArrays {
  InNumbers<Storage> source;
  OutNumbers<Storage> result;
};

// Shared memory of a block.
template <class Storage>
struct ConvShared {
  RowElement<Storage>* rows;
  float* band;
  float* more;

  __device__ ConvShared(const ConvPlan& plan, int taps, float* shared)
      : rows(reinterpret_cast<RowElement<Storage>*>(shared)),
        band(
            reinterpret_cast<float*>(rows + plan.rows * RowPitch<RowElement<Storage>>(plan.chunk))),
        more(band + BandFloats(plan.tile, taps)) {}
};

// The positions of a block. fill(tile) stores the weights of a tile's results that belong to real
// positions, or starts to copy them. `before`: see BandTile. kWalks: see ConvPlan.
template <bool kWalks, class Storage, class FillBand>
__device__ void ConvolvePart(const TapSizes& sizes, const ConvPlan& plan, const ConvBlock& block,
                             const SentenceHead& head, int before,
                             const ConvArrays<Storage>& arrays, const ConvShared<Storage>& shared,
                             const FillBand& fill) {
  const ChannelChunk chunk(sizes, plan.chunk, block.chunk);
  const int64_t at = sizes.Channel(block.b, 0, block.h) + chunk.first;
  const int pitch = RowPitch<RowElement<Storage>>(plan.chunk);
  const int end = min(sizes.positions, block.first + plan.part);
  int first = block.first;
  do {
    const BandTile<Storage> tile{.first = first,
                                 .count = min(plan.tile, end - first),
                                 .rows = shared.rows,
                                 .first_row = plan.whole ? 0 : first - before,
                                 .before = before,
                                 .band = shared.band};
    if (first < head.length) {
      int row = max(0, tile.first_row);
      if (kWalks && first > block.first) {
        __syncthreads();  // the tile before is no longer read
        KeepLastRows(plan, sizes.taps, shared.rows);
        row = max(row, tile.first_row + sizes.taps - 1);
      }
      const int rows_end = min(head.length, tile.first_row + plan.rows);
      StageRows<Storage>(arrays.source + (at + int64_t{row} * sizes.channels), sizes.channels,
                         chunk, rows_end - row, plan.aligned,
                         shared.rows + (row - tile.first_row) * pitch);
      fill(tile);
      WaitForCopies();
      __syncthreads();
    }
    StoreBandResults<Storage>(sizes, head, chunk, tile, plan.aligned,
                              arrays.result + (at + int64_t{first} * sizes.channels));
    first += plan.tile;
  } while (kWalks && first < end);
}

}  // namespace thimble
