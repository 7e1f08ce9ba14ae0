#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "thimble/device/cuda/check.h"
#include "thimble/device/cuda/elements.cuh"
#include "thimble/device/cuda/launch_early.cuh"
#include "thimble/device/cuda/numbers.cuh"
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

// ---- Gradient: a block for each word lists the places of its word, then adds up their rows. The
// threads of a block own neighbouring channels.

constexpr int kPlaceThreads = 256;
constexpr int kPlaceWarps = kPlaceThreads / 32;
// Tokens that are searched for places before their rows are added up.
constexpr int kTokensAtOnce = 2048;
// Rows whose numbers a thread loads before it adds the first.
constexpr int kPlacesAtOnce = 8;

// Appends the places of `word` among tokens [first, first + kPlaceThreads) to the list, in order.
// Called by all threads; returns the list's new length.
__device__ int AppendPlaces(const TokenRows& sizes, const int32_t* tokens, int32_t word,
                            int64_t first, int listed, int32_t* list) {
  __shared__ int counts[kPlaceWarps];
  const int64_t place = first + threadIdx.x;
  const bool found = place < sizes.places && tokens[place] == word;
  const unsigned mask = __ballot_sync(0xFFFFFFFFU, found);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) counts[warp] = __popc(mask);
  __syncthreads();
  int before = listed;
  int all = listed;
  for (int w = 0; w < kPlaceWarps; ++w) {
    if (w < warp) before += counts[w];
    all += counts[w];
  }
  if (found) list[before + __popc(mask & ((1U << lane) - 1))] = static_cast<int32_t>(place);
  __syncthreads();  // the list is complete, and counts are read
  return all;
}

template <class Storage>
__global__ void __launch_bounds__(kPlaceThreads)
    EmbeddingGradKernel(TokenRows sizes, const int32_t* tokens, InNumbers<Storage> dy,
                        OutNumbers<AnyNumber> dtable) {
  __shared__ int32_t list[kTokensAtOnce];
  WaitForKernelsBefore();
  const auto word = static_cast<int32_t>(blockIdx.x);
  const int64_t row = int64_t{word} * sizes.channels;
  for (int channel = static_cast<int>(threadIdx.x);
       channel - static_cast<int>(threadIdx.x) < sizes.channels; channel += kPlaceThreads) {
    float sum = 0;
    for (int64_t begin = 0; begin < sizes.places && word != sizes.padding; begin += kTokensAtOnce) {
      int listed = 0;
      const int64_t end = min(begin + int64_t{kTokensAtOnce}, sizes.places);
      for (int64_t first = begin; first < end; first += kPlaceThreads) {
        listed = AppendPlaces(sizes, tokens, word, first, listed, list);
      }
      for (int i = 0; i < listed && channel < sizes.channels; i += kPlacesAtOnce) {
        float numbers[kPlacesAtOnce];
#pragma unroll
        for (int k = 0; k < kPlacesAtOnce; ++k) {
          numbers[k] = i + k < listed
                           ? LoadNumber(dy + (int64_t{list[i + k]} * sizes.channels + channel))
                           : 0.0F;
        }
#pragma unroll
        for (int k = 0; k < kPlacesAtOnce; ++k) {
          if (i + k < listed) sum += numbers[k];
        }
      }
      __syncthreads();  // the list is no longer read
    }
    if (channel < sizes.channels) StoreNumber(sizes.scale * sum, dtable + (row + channel));
  }
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
    EmbeddingGradKernel<Storage>
        <<<static_cast<unsigned>(table[0]), kPlaceThreads, 0, call.stream>>>(
            sizes, call.In<int32_t>(0), As<Storage>(ConstNumbersOf(call.inputs[1])),
            NumbersOf(call.outputs[0]));
    THIMBLE_CUDA_LAUNCHED();
  });
}

}  // namespace thimble
