#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/warp.cuh"
#include "thimble/ops/embedding/embedding.h"

namespace thimble {
namespace {

// Tokens (B, T) and the channels of their rows.
struct TokenRows {
  int64_t places;   // B * T
  int64_t length;   // T
  int64_t words;    // V
  int channels;     // C
  int32_t padding;  // -1: none
  float scale;

  __device__ bool Has(int32_t token) const { return token >= 0 && token < words; }
};

// Sines and cosines of T positions, or of one if all tokens of a row are at the same.
struct Positions {
  int64_t first;
  int64_t advance;
  int channels;
  const int32_t* offset;  // (1), or null
  float* table;           // (T, C)

  __device__ void operator()(int64_t i) const {
    const int half = channels / 2;
    const auto c = static_cast<int>(i % channels);
    const int64_t start = first + (offset == nullptr ? 0 : *offset);
    const auto position = static_cast<double>(start + advance * (i / channels));
    const double steps = max(1, half - 1);
    const double angle = position * exp(-(c % half) * (log(10000.0) / steps));
    table[i] = static_cast<float>(c < half ? sin(angle) : cos(angle));
  }
};

template <class Storage>
struct EmbedRows {
  TokenRows sizes;
  const int32_t* tokens;      // (B, T)
  InNumbers<Storage> table;   // (V, C)
  const float* positions;     // (T, C) or, for all T, (C); or null
  int64_t position_channels;  // C, or 0
  OutNumbers<Storage> y;      // (B, T, C)

  __device__ void operator()(int64_t i) const {
    const int64_t place = i / sizes.channels;
    const int64_t c = i % sizes.channels;
    const int32_t token = tokens[place];
    float number = 0;
    if (!sizes.Has(token)) {
      number = nanf("");
    } else if (token != sizes.padding) {
      number = sizes.scale * LoadNumber(table + (token * int64_t{sizes.channels} + c));
      if (positions != nullptr) number += positions[place % sizes.length * position_channels + c];
    }
    StoreNumber(number, y + i);
  }
};

int64_t PositionRows(const Shape& tokens, const Attributes& attributes) {
  if (attributes.Int("positions") == 0 || tokens.elements() == 0) return 0;
  return attributes.Int("advance") == 0 ? 1 : tokens[1];
}

TokenRows TokenRowsOf(const Shape& tokens, int64_t words, int64_t channels,
                      const Attributes& attributes) {
  return {.places = tokens.elements(),
          .length = std::max<int64_t>(1, tokens[1]),
          .words = words,
          .channels = static_cast<int>(channels),
          .padding = static_cast<int32_t>(attributes.Int("padding")),
          .scale = static_cast<float>(attributes.Float("scale"))};
}

// ---- Gradient. A block has some words and neighbouring channels. It lists the places of its
// words, which are few, and each of its warps adds up the rows of one word after the other: the sum
// of an element is one chain in the order of the places.

constexpr int kPlaceWarps = 8;
constexpr int kPlaceThreads = kPlaceWarps * kWarpLanes;
// Four on each multiprocessor of a large GPU.
constexpr int kPlaceBlocksAtOnce = 4;
constexpr int kMostPlaceBlocks = 512;
// Tokens that a lane loads before it compares the first: a block loads all of a usual batch at
// once.
constexpr int kTokensOfLane = 16;
constexpr int kTokensOfWarp = kTokensOfLane * kWarpLanes;
constexpr int kTokensOfBlock = kTokensOfWarp * kPlaceWarps;
// Places that a block can list: all those of a usual batch.
constexpr int kMostListed = kTokensOfBlock;
// Places of a word that a warp collects before it adds their rows.
constexpr int kMostFound = 256;

// The words of a block: neighbours belong to different blocks, because the most frequent words of a
// vocabulary are often neighbours.
struct WordGroup {
  int groups;  // a power of two
  int index;
  uint32_t words;  // at most 2^31: negative tokens are beyond
  int32_t padding;

  // Whether a token is one of these words, and has a gradient. Without branches, between which a
  // lane would wait for each of its tokens.
  __device__ bool Has(int32_t token) const {
    return static_cast<bool>(static_cast<int>(static_cast<uint32_t>(token) < words) &
                             static_cast<int>(token != padding) &
                             static_cast<int>((token & (groups - 1)) == index));
  }
};

struct ListedPlaces {
  int32_t tokens[kMostListed];
  int32_t places[kMostListed];
  int counts[kPlaceWarps];
};

// The number of lanes below this one that have found something, where `found` has a bit for each.
__device__ int FoundBelow(unsigned found) {
  return __popc(found & ((1U << (threadIdx.x % kWarpLanes)) - 1));
}

// Lists the places of a group's words in order. Called by all threads; returns their number, of
// which only the first kMostListed are listed.
__device__ int64_t ListPlaces(int64_t places, const WordGroup& group, const int32_t* tokens,
                              ListedPlaces& list) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const int first = warp * kTokensOfWarp + lane;
  int64_t listed = 0;
  for (int64_t begin = 0; begin < places; begin += kTokensOfBlock) {
    const auto count = static_cast<int>(min(places - begin, int64_t{kTokensOfBlock}));
    int32_t own[kTokensOfLane];
#pragma unroll
    for (int k = 0; k < kTokensOfLane; ++k) {
      // Beyond the end any token: loads that depend on nothing are all on their way at once.
      own[k] = tokens[begin + min(first + k * kWarpLanes, count - 1)];
    }
    unsigned found[kTokensOfLane];
    int num_found = 0;
#pragma unroll
    for (int k = 0; k < kTokensOfLane; ++k) {
      if (first + k * kWarpLanes >= count) own[k] = -1;
      found[k] = __ballot_sync(0xFFFFFFFFU, group.Has(own[k]));
      num_found += __popc(found[k]);
    }
    if (lane == 0) list.counts[warp] = num_found;
    __syncthreads();
    int64_t at = listed;
    for (int w = 0; w < kPlaceWarps; ++w) {
      if (w < warp) at += list.counts[w];
      listed += list.counts[w];
    }
#pragma unroll
    for (int k = 0; k < kTokensOfLane; ++k) {
      if (found[k] == 0) continue;
      const int64_t own_at = at + FoundBelow(found[k]);
      if ((found[k] >> lane & 1) != 0 && own_at < kMostListed) {
        list.tokens[own_at] = own[k];
        list.places[own_at] = static_cast<int32_t>(begin + first + k * kWarpLanes);
      }
      at += __popc(found[k]);
    }
    __syncthreads();  // the list is complete, and counts are read
  }
  return listed;
}

// A lane's kWidth channels of the rows of dy, of which there may be none.
template <class Storage, int kWidth>
struct LaneRows {
  using Part = std::conditional_t<kWidth == 1, Pack<float, 1>, Pack<Storage, kWidth>>;
  // Rows that are loaded before the first is added: they take 16 or 32 registers.
  static constexpr int kAtOnce = sizeof(Part) == 16 ? 8 : 16;

  const Storage* numbers;  // of the lane in row 0
  int64_t row_numbers;
  bool has_channels;

  __device__ Part Load(int32_t row) const {
    if constexpr (kWidth == 1) {
      Part part;
      part.words.at[0] = LoadNumber(numbers + row * row_numbers);
      return part;
    } else {
      return LoadPack<kWidth>(numbers + row * row_numbers);
    }
  }
  // Adds these rows in order: as many as possible kRows at once, then the rest. Without conditions
  // all loads are on their way before the first row is added.
  template <int kRows = kAtOnce>
  __device__ void Add(const int32_t* rows, int count, float (&sums)[kWidth]) const {
    if (!has_channels) return;
    int i = 0;
#pragma unroll 1
    for (; i + kRows <= count; i += kRows) {
      Part parts[kRows];
#pragma unroll
      for (int k = 0; k < kRows; ++k) parts[k] = Load(rows[i + k]);
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
#pragma unroll
        for (int c = 0; c < kWidth; ++c) sums[c] += parts[k][c];
      }
    }
    if constexpr (kRows > 1) Add<kRows / 2>(rows + i, count - i, sums);
  }
};

// Adds the rows of a word: of those places from `first` on, among `count`, whose token_at(i) is the
// word. A lane compares kSearches tokens at once. Called by all lanes of a warp, which share the
// list `found`.
template <int kSearches, class Rows, class TokenAt, class PlaceAt, int kWidth>
__device__ void AddPlaces(int64_t word, int64_t first, int64_t count, const TokenAt& token_at,
                          const PlaceAt& place_at, const Rows& rows, int32_t* found,
                          float (&sums)[kWidth]) {
  constexpr int kSearched = kSearches * kWarpLanes;
  static_assert(kSearched <= kMostFound);
  int num_found = 0;
  for (int64_t begin = first; begin < count; begin += kSearched) {
    const int64_t own = begin + threadIdx.x % kWarpLanes;
    int32_t tokens[kSearches];
#pragma unroll
    for (int k = 0; k < kSearches; ++k) tokens[k] = token_at(min(own + k * kWarpLanes, count - 1));
#pragma unroll
    for (int k = 0; k < kSearches; ++k) {
      const int64_t i = own + k * kWarpLanes;
      const bool is_word = i < count && tokens[k] == word;
      const unsigned lanes = __ballot_sync(0xFFFFFFFFU, is_word);
      if (is_word) found[num_found + FoundBelow(lanes)] = place_at(i);
      num_found += __popc(lanes);
    }
    if (num_found + kSearched <= kMostFound && begin + kSearched < count) continue;
    __syncwarp();
    rows.Add(found, num_found, sums);
    num_found = 0;
    __syncwarp();  // the list is no longer read
  }
}

// Whether a word is not among the first `count` of a list. Called by all lanes of a warp.
__device__ bool IsNewWord(int32_t word, const int32_t* tokens, int count) {
  for (int begin = 0; begin < count; begin += kWarpLanes) {
    const int i = begin + static_cast<int>(threadIdx.x) % kWarpLanes;
    if (__any_sync(0xFFFFFFFFU, i < count && tokens[i] == word) != 0) return false;
  }
  return true;
}

template <class Storage, int kWidth>
__global__ void __launch_bounds__(kPlaceThreads, kPlaceBlocksAtOnce)
    EmbeddingGradKernel(TokenRows sizes, int groups, const int32_t* tokens, const Storage* dy,
                        OutNumbers<AnyNumber> dtable) {
  __shared__ ListedPlaces list;
  __shared__ int32_t found[kPlaceWarps][kMostFound];
  WaitForKernelsBefore();
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int slice = static_cast<int>(blockIdx.x) / groups;
  const WordGroup group{groups, static_cast<int>(blockIdx.x) % groups,
                        static_cast<uint32_t>(min(sizes.words, int64_t{1} << 31)), sizes.padding};
  const int channel = (slice * kWarpLanes + static_cast<int>(threadIdx.x) % kWarpLanes) * kWidth;
  const LaneRows<Storage, kWidth> rows{dy + channel, sizes.channels, channel < sizes.channels};
  const auto store = [&](int64_t word, float(&sums)[kWidth]) {
#pragma unroll
    for (int c = 0; c < kWidth; ++c) sums[c] *= sizes.scale;
    if (rows.has_channels) StorePack(sums, dtable + (word * sizes.channels + channel));
  };
  const int64_t first_word = group.index + warp * groups;
  const int words_apart = kPlaceWarps * groups;
  for (int64_t word = first_word; word < sizes.words; word += words_apart) {
    float zeros[kWidth] = {};
    store(word, zeros);
  }
  // Has barriers: the sums below overwrite zeros of other warps.
  const int64_t listed = ListPlaces(sizes.places, group, tokens, list);
  if (listed <= kMostListed) {
    for (int i = warp; i < listed; i += kPlaceWarps) {
      const int32_t word = list.tokens[i];
      if (!IsNewWord(word, list.tokens, i)) continue;
      float sums[kWidth] = {};
      AddPlaces<1>(
          word, i, listed, [&](int64_t at) { return list.tokens[at]; },
          [&](int64_t at) { return list.places[at]; }, rows, found[warp], sums);
      store(word, sums);
    }
    return;
  }
  // More places than the list has: search all tokens for each word.
  for (int64_t word = first_word; word < sizes.words; word += words_apart) {
    if (word == sizes.padding) continue;
    float sums[kWidth] = {};
    AddPlaces<4>(
        word, 0, sizes.places, [&](int64_t place) { return tokens[place]; },
        [](int64_t place) { return static_cast<int32_t>(place); }, rows, found[warp], sums);
    store(word, sums);
  }
}

// Requires words and channels.
template <class Storage, int kWidth>
void LaunchEmbeddingGrad(const KernelCall& call, const TokenRows& sizes) {
  const int slices = (sizes.channels - 1) / (kWarpLanes * kWidth) + 1;
  const int64_t most_groups = std::min<int64_t>(sizes.words, kMostPlaceBlocks / slices);
  const auto groups =
      static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, most_groups))));
  EmbeddingGradKernel<Storage, kWidth>
      <<<static_cast<unsigned>(groups) * static_cast<unsigned>(slices), kPlaceThreads, 0,
         call.stream>>>(sizes, groups, call.In<int32_t>(0),
                        As<Storage>(ConstNumbersOf(call.inputs[1])), NumbersOf(call.outputs[0]));
  THIMBLE_CUDA_LAUNCHED();
}

}  // namespace

size_t EmbeddingCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const int64_t rows = PositionRows(call.inputs[0], call.attributes);
  return static_cast<size_t>(rows * call.inputs[1][1]) * sizeof(float);
}

void EmbeddingCuda::Run(const KernelCall& call) {
  const Shape& tokens = call.in_shape(0);
  const Shape& table = call.in_shape(1);
  const TokenRows sizes = TokenRowsOf(tokens, table[0], table[1], call.attributes);
  const int64_t rows = PositionRows(tokens, call.attributes);
  float* positions = nullptr;
  if (rows > 0) {
    positions = reinterpret_cast<float*>(call.scratch.data());  // NOLINT: raw storage
    const int32_t* offset = call.inputs.size() > 2 ? call.In<int32_t>(2) : nullptr;
    LaunchElements(call.stream, rows * table[1],
                   Positions{call.attributes.Int("first_position"), call.attributes.Int("advance"),
                             sizes.channels, offset, positions});
  }
  const std::array types{call.inputs[1].dtype, call.outputs[0].dtype};
  WithCommonStorage(types, [&](auto type) {
    using Storage = decltype(type);
    LaunchElements(
        call.stream, sizes.places * table[1],
        EmbedRows<Storage>{sizes, call.In<int32_t>(0), As<Storage>(ConstNumbersOf(call.inputs[1])),
                           positions, rows > 1 ? table[1] : 0,
                           As<Storage>(NumbersOf(call.outputs[0]))});
  });
}

void EmbeddingGradCuda::Run(const KernelCall& call) {
  const Shape& table = call.out_shape(0);
  if (table.elements() == 0) return;
  const TokenRows sizes = TokenRowsOf(call.in_shape(0), table[0], table[1], call.attributes);
  WithStorage(call.inputs[1].dtype, [&](auto type) {
    using Storage = decltype(type);
    constexpr int kWidth = 4;
    const bool whole =
        table[1] % kWidth == 0 && AllAligned16(call.inputs[1].data, call.outputs[0].data);
    whole ? LaunchEmbeddingGrad<Storage, kWidth>(call, sizes)
          : LaunchEmbeddingGrad<Storage, 1>(call, sizes);
  });
}

}  // namespace thimble
