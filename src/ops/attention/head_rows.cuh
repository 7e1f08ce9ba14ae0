// The rows of a head in a block's shared memory: how many, loading them, drawing what dropout keeps
// of their probabilities, and storing what warps computed for them.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/async_copy.cuh"
#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/ops/attention/head_products.cuh"
#include "thimble/ops/attention/head_sizes.cuh"
#include "thimble/ops/dropout/weight_dropout.cuh"

namespace thimble::heads {

// How numbers are stored in shared memory.
template <class Storage>
using SharedNumber = std::conditional_t<std::is_same_v<Storage, AnyNumber>, float, Storage>;

inline constexpr int kMostWarps = 8;        // of a block
inline constexpr int kMostWindowRows = 64;  // more do not make copies better
inline constexpr int kMostHeadChannels = 256;
// Two blocks run on a multiprocessor of 227 KB, one on every other.
inline constexpr size_t kSharedLimit = size_t{112} << 10;

__host__ __device__ constexpr int RoundUpTo(int multiple, int count) {
  return (count + multiple - 1) / multiple * multiple;
}

// What a kernel knows: that there are one tile of queries and one of sources, whose rows are copied
// in whole groups. Then its warps hold fewer numbers, so that more blocks run on a multiprocessor.
enum class Tiles { kOne, kAny };
template <Tiles kTiles>
inline constexpr int kThreadLimit = kTiles == Tiles::kOne ? 128 : kMostWarps* kWarpLanes;
template <Tiles kTiles>
inline constexpr auto kSumsOf = kTiles == Tiles::kOne ? Sums::kNone : Sums::kBefore;
template <Tiles kTiles, class Storage>
constexpr int LeastBlocks() {
  if (kTiles == Tiles::kOne) return sizeof(SharedNumber<Storage>) == 2 ? 5 : 3;
  return std::is_same_v<Storage, AnyNumber> ? 1 : 2;
}

// How the heads of a call are divided among warps and laid out in shared memory: a block has rows
// of one side, queries or sources, and goes through the other side with a window.
struct HeadTiling {
  int inner;         // channels that are multiplied, zeros at the end
  int parts;         // warps that share a strip, each has channels of its sums
  int strips;        // of a block
  int window_rows;   // whole tiles
  int stride;        // of rows in shared memory; eight rows begin in different banks
  bool whole;        // whether rows are copied in groups of 16 bytes
  int number_bytes;  // in shared memory

  // For `rows` of one side, all in one block, and the other side as a whole.
  HeadTiling(const HeadSizes& sizes, int bytes, bool aligned, int rows, int other_rows)
      : inner(RoundUpTo(kGroupChannels, sizes.head_channels)),
        parts((sizes.head_channels - 1) / kPartChannels + 1),
        strips((rows - 1) / kStripRows + 1),
        window_rows(RoundUpTo(kTileRows, other_rows)),
        stride(parts * kPartChannels + kCopiedBytes / bytes),
        whole(aligned && sizes.head_channels % 8 == 0),
        number_bytes(bytes) {}

  int MostStrips() const { return std::min(4, kMostWarps / parts); }
  // Takes fewer rows at once, so that `arrays` of a block's rows and two of the window fit.
  void Shrink(int arrays) {
    strips = std::min(strips, MostStrips());
    window_rows = std::min(window_rows, kMostWindowRows);
    if (SharedBytes(arrays) > kSharedLimit) window_rows = kTileRows;
    while (SharedBytes(arrays) > kSharedLimit && strips > 1) strips /= 2;
  }

  int Warps() const { return strips * parts; }
  __host__ __device__ int rows() const { return strips * kStripRows; }
  __host__ __device__ int channels() const { return parts * kPartChannels; }
  bool HasOneTile(const HeadSizes& sizes) const {
    return whole && sizes.queries <= kTileRows && sizes.sources <= kTileRows &&
           Warps() * kWarpLanes <= kThreadLimit<Tiles::kOne>;
  }
  // A warp for each part (x) of each strip (y).
  dim3 Threads() const {
    return {static_cast<unsigned>(parts * kWarpLanes), static_cast<unsigned>(strips)};
  }
  // Blocks for each sentence (x) and head (y), and for `of_head` rows of it (z).
  dim3 Blocks(const HeadSizes& sizes, int of_head) const {
    return {static_cast<unsigned>(sizes.batch), static_cast<unsigned>(sizes.heads),
            static_cast<unsigned>((of_head - 1) / rows() + 1)};
  }
  // For each row of the window there are also three numbers, and for each pair of rows a bit.
  size_t SharedBytes(int arrays) const {
    return (arrays * rows() + 2 * window_rows) * row_bytes() +
           window_rows * (3 * sizeof(float) + rows() / 8);
  }
  size_t row_bytes() const { return static_cast<size_t>(stride) * number_bytes; }
};

// The head of a sentence that a block works on. What follows from these numbers is the same for all
// threads, so that it takes no registers of theirs.
struct HeadPlace {
  int b = static_cast<int>(blockIdx.x);
  int h = static_cast<int>(blockIdx.y);
};

// The rows of a head that a block has.
struct HeadBlock {
  HeadPlace place;
  int first, count;

  __device__ HeadBlock(const HeadTiling& tiling, int of_head)
      : first(static_cast<int>(blockIdx.z) * tiling.rows()),
        count(min(tiling.rows(), of_head - first)) {}
};

// A number that is the same in all lanes of a warp: the compiler then knows it.
__device__ inline int OfWarp(unsigned number) {
  return __shfl_sync(0xFFFFFFFFU, static_cast<int>(number), 0);
}

// The place of a warp in its block.
struct HeadWarp {
  int row = OfWarp(threadIdx.y) * kStripRows;                      // the first of its strip
  int channel = OfWarp(threadIdx.x / kWarpLanes) * kPartChannels;  // of its part
};

__device__ inline int ThreadOfBlock() {
  return static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
}
__device__ inline int WarpOfBlock() { return ThreadOfBlock() / kWarpLanes; }
__device__ inline int ThreadsOfBlock() { return static_cast<int>(blockDim.x * blockDim.y); }

// 16 bytes of a row in shared memory; what does not exist becomes zero.
template <class Storage>
__device__ void LoadGroup(const InNumbers<Storage>& row, bool whole, int existing,
                          SharedNumber<Storage>* to) {
  constexpr int kGroup = kCopiedBytes / sizeof(SharedNumber<Storage>);
  if constexpr (std::is_same_v<Storage, AnyNumber>) {
    float numbers[kGroup] = {};
    if (whole && existing > 0) {
      const auto pack = LoadPack<kGroup>(row);
#pragma unroll
      for (int i = 0; i < kGroup; ++i) numbers[i] = pack[i];
    } else {
#pragma unroll
      for (int i = 0; i < kGroup; ++i) {
        if (i < existing) numbers[i] = LoadNumber(row + i);
      }
    }
    StorePack(numbers, to);
  } else if (whole) {
    CopyGroupAsync(to, row, existing > 0);
  } else {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) to[i] = i < existing ? row[i] : Storage{};
  }
}

// Copies rows of a head from arrays of the same shape to shared memory, one array after the other.
// The first `existing` rows exist; the rest becomes zero. Called by all threads, which then wait
// for their copies.
template <class Storage, int kArrays>
__device__ void LoadRows(const HeadSizes& sizes, const HeadTiling& tiling,
                         const InNumbers<Storage> (&arrays)[kArrays], int64_t first, int rows,
                         int existing, SharedNumber<Storage>* to) {
  constexpr int kGroup = kCopiedBytes / sizeof(SharedNumber<Storage>);
  constexpr int kGroups = kPartChannels / kGroup;  // of a row's part: a group for each thread
  const int first_channel = ThreadOfBlock() % kGroups * kGroup;
#pragma unroll 1
  for (int row = ThreadOfBlock() / kGroups; row < rows; row += ThreadsOfBlock() / kGroups) {
#pragma unroll 1
    for (int channel = first_channel; channel < tiling.channels(); channel += kPartChannels) {
      const int numbers = row < existing ? sizes.head_channels - channel : 0;
      const int64_t from = first + int64_t{row} * sizes.channels + channel;
#pragma unroll
      for (int i = 0; i < kArrays; ++i) {
        LoadGroup<Storage>(arrays[i] + from, tiling.whole, numbers,
                           to + (i * rows + row) * tiling.stride + channel);
      }
    }
  }
}

// A tile of two arrays in shared memory: keys and values, or queries and dy.
template <class Storage>
struct HeadTile {
  const SharedNumber<Storage>* first;
  const SharedNumber<Storage>* second;
  int row;  // the tile's first among the rows in shared memory
};

// Rows of two arrays of a head, as many at once as fit in shared memory.
template <class Storage>
struct RowWindow {
  InNumbers<Storage> arrays[2];
  int64_t first;  // the head's first number
  int existing;   // rows of the head
  SharedNumber<Storage>* shared;
  int begin = -1;  // the first row that is there

  // Called by all threads, for tiles in order, also again from the first one on. When the window
  // moves, load(first, rows) loads what else belongs to its rows.
  template <class Load>
  __device__ HeadTile<Storage> Tile(const HeadSizes& sizes, const HeadTiling& tiling, int tile,
                                    const Load& load) {
    const int rows = tiling.window_rows;
    const int row = tile * kTileRows;
    if (begin < 0 || row < begin || row >= begin + rows) {
      if (begin >= 0) __syncthreads();  // no thread uses the rows before
      begin = row;
      LoadRows<Storage>(sizes, tiling, arrays, first + int64_t{begin} * sizes.channels, rows,
                        existing - begin, shared);
      load(begin, min(rows, existing - begin));
      WaitForCopies();
      __syncthreads();
    }
    const auto* at = shared + (row - begin) * tiling.stride;
    return {at, at + rows * tiling.stride, row - begin};
  }
};

// The probabilities that dropout keeps: a byte for eight sources, rows are queries.
struct KeptProbabilities {
  uint8_t* bytes;
  int stride;  // of rows
  float scale;

  // Draws for queries and at most 64 sources from these on, if anything is dropped. Called by all
  // threads.
  __device__ void Draw(const HeadSizes& sizes, const WeightDraw& dropout, const HeadPlace& place,
                       int first_query, int queries, int first_source, int sources) const {
    if (dropout.samples == nullptr) return;
    const auto epoch = static_cast<uint32_t>(*dropout.epoch);
    const auto sample = static_cast<uint32_t>(dropout.samples[place.b]);
    const int shift = sources > 32 ? 3 : 2;  // a thread for each of 8 or 4 bytes of a row
    const int byte = ThreadOfBlock() & ((1 << shift) - 1);
    if (8 * byte >= sources) return;
#pragma unroll 1
    for (int t = ThreadOfBlock() >> shift; t < queries; t += ThreadsOfBlock() >> shift) {
      const int64_t drawn = sizes.Drawn(first_query + t, place.h, first_source + 8 * byte);
      uint32_t kept = 0;
#pragma unroll
      for (int draw = 0; draw < 2; ++draw) {
        const auto words = dropout.draw.Words(
            epoch, sample, static_cast<uint32_t>(drawn / kElementsPerDraw + draw));
#pragma unroll
        for (int word = 0; word < kElementsPerDraw; ++word) {
          kept |= (dropout.draw.Keeps(words[word]) ? 1U : 0U) << (kElementsPerDraw * draw + word);
        }
      }
      bytes[t * stride + byte] = static_cast<uint8_t>(kept);
    }
  }

  // The factors of a lane's numbers in a strip of queries by a tile of sources, from these on.
  template <class Multiply>
  __device__ void OfQueries(int query, int source, const Multiply& multiply) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint8_t* row = bytes + (query + RowOfLane(2 * half)) * stride + source / 8;
      const uint32_t bits = *reinterpret_cast<const uint32_t*>(row) >> ColumnOfLane(0);
#pragma unroll
      for (int i = 0; i < kTileRows / 8; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) multiply(i, 2 * half + j, Factor(bits >> (8 * i + j)));
      }
    }
  }
  // The same for a strip of sources by a tile of queries.
  template <class Multiply>
  __device__ void OfSources(int source, int query, const Multiply& multiply) const {
#pragma unroll
    for (int i = 0; i < kTileRows / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const uint8_t* row = bytes + (query + 8 * i + ColumnOfLane(j)) * stride + source / 8;
        const uint32_t bits = *reinterpret_cast<const uint16_t*>(row) >> RowOfLane(0);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          multiply(i, 2 * half + j, Factor(bits >> (8 * half)));
        }
      }
    }
  }

 private:
  __device__ float Factor(uint32_t bits) const { return (bits & 1U) != 0 ? scale : 0.0F; }
};

// Lanes 4 * i to 4 * i + 3 transpose their words, as a matrix with a row in each lane.
__device__ inline void TransposeFour(uint32_t (&words)[4]) {
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (LaneOfWarp() & distance) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      const uint32_t given = upper ? words[i] : words[i + distance];
      const uint32_t received = __shfl_xor_sync(0xFFFFFFFFU, given, distance);
      words[i] = upper ? received : words[i];
      words[i + distance] = upper ? words[i + distance] : received;
    }
  }
}

// Eight neighbours of the lane's row `half` of 32 columns, from tiles of eight columns: those of
// tile lane % 4.
template <class Number>
__device__ Pack<Number, 8> GatherEight(const float (*tiles)[4], int half) {
  Pack<Number, 8> eight;
  if constexpr (std::is_same_v<Number, float>) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) words[i] = __float_as_uint(tiles[i][2 * half + j]);
      TransposeFour(words);
#pragma unroll
      for (int i = 0; i < 4; ++i) eight.words.at[2 * i + j] = __uint_as_float(words[i]);
    }
  } else {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      words[i] = EncodeTwo<Number>(tiles[i][2 * half], tiles[i][2 * half + 1]);
    }
    TransposeFour(words);
#pragma unroll
    for (int i = 0; i < 4; ++i) eight.words.at[i] = words[i];
  }
  return eight;
}

// Stores eight neighbours of a row, or those of them that exist.
template <class Storage>
__device__ void StoreEight(const Pack<SharedNumber<Storage>, 8>& eight, bool whole, int existing,
                           const OutNumbers<Storage>& to) {
  if (!whole) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i < existing) StoreNumber(eight[i], to + i);
    }
  } else if constexpr (std::is_same_v<Storage, AnyNumber>) {
    StorePack(eight.words.at, to);
  } else {
    *reinterpret_cast<Pack<Storage, 8>*>(to) = eight;
  }
}

// Stores a warp's sums in the rows of a strip, of which `existing` exist. `head` is the first
// channel of the head in the strip's first row, the sums begin with `channel`.
template <class Storage>
__device__ void StorePart(const HeadSizes& sizes, const HeadTiling& tiling, const PartNumbers& sums,
                          int existing, int channel, const OutNumbers<Storage>& head) {
#pragma unroll
  for (int first = 0; first < kPartChannels / 8; first += 4) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto eight = GatherEight<SharedNumber<Storage>>(sums + first, half);
      const int row = RowOfLane(2 * half);
      const int at = channel + 8 * (first + LaneOfWarp() % 4);
      if (row < existing && at < sizes.head_channels) {
        StoreEight<Storage>(eight, tiling.whole, sizes.head_channels - at,
                            head + (int64_t{row} * sizes.channels + at));
      }
    }
  }
}

// Fills rows of a head. Called by all threads of a block.
template <class Storage>
__device__ void FillRows(const HeadSizes& sizes, float value, int rows,
                         const OutNumbers<Storage>& head) {
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
#pragma unroll 1
    for (int channel = ThreadOfBlock(); channel < sizes.head_channels;
         channel += ThreadsOfBlock()) {
      StoreNumber(value, head + (int64_t{row} * sizes.channels + channel));
    }
  }
}

// ---- Launches

template <class Kernel>
bool AllowShared(Kernel kernel) {
  THIMBLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kSharedLimit)));
  return true;
}

}  // namespace thimble::heads
