#include <algorithm>
#include <limits>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/embedding/embedding.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/embedding/embedding_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

#ifndef THIMBLE_OPS_EMBEDDING_CPU_ONCE_
#define THIMBLE_OPS_EMBEDDING_CPU_ONCE_
namespace thimble {
namespace {

// The places of each token as a list: head[token] is the first one, next[place] the one after it.
// (Not -1: memory that nothing has written is filled with its bits.)
constexpr int32_t kNoPlace = std::numeric_limits<int32_t>::max();
struct TokenPlaces {
  const int32_t* head;  // (V)
  const int32_t* next;  // (B * T)
};

}  // namespace
}  // namespace thimble
#endif

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// y = scale * row, plus `position` unless it is null. All (C).
void EmbedToken(ConstNumbers row, float scale, const float* position, size_t channels, Numbers y) {
  VisitNumbers(row, [&](const auto* from) HWY_ATTR {
    VisitNumbers(y, [&](auto* to) HWY_ATTR {
      if (position == nullptr) {
        ForEachVector(channels, [=](auto tag, size_t i) HWY_ATTR {
          const auto number = LoadNumbers(tag, from + i);
          StoreNumbers(hn::Mul(number, hn::Set(tag, scale)), tag, to + i);
        });
      } else {
        ForEachVector(channels, [=](auto tag, size_t i) HWY_ATTR {
          const auto number = LoadNumbers(tag, from + i);
          const auto shift = hn::LoadU(tag, position + i);
          StoreNumbers(hn::MulAdd(number, hn::Set(tag, scale), shift), tag, to + i);
        });
      }
    });
  });
}

void FillRow(float number, size_t channels, Numbers y) {
  VisitNumbers(y, [&](auto* to) HWY_ATTR {
    ForEachVector(channels, [=](auto tag, size_t i)
                                HWY_ATTR { StoreNumbers(hn::Set(tag, number), tag, to + i); });
  });
}

// dtable (C) = scale * the sum of dy (B * T, C) over a token's places, in their order. Requires
// that `first`, its first place, exists.
void SumPlaces(const TokenPlaces& places, int32_t first, ConstNumbers dy, size_t channels,
               float scale, Numbers dtable) {
  HWY_ALIGN float copy[kNumbersPerPiece];
  for (size_t begin = 0; begin < channels; begin += kNumbersPerPiece) {
    const size_t count = std::min(kNumbersPerPiece, channels - begin);
    float* sums = dtable.is_float() ? dtable.floats() + begin : copy;
    VisitNumbers(dy + begin, [&](const auto* from) HWY_ATTR {
      Decode(from + static_cast<size_t>(first) * channels, count, sums);
      for (int32_t place = places.next[first]; place != kNoPlace; place = places.next[place]) {
        const auto* row = from + static_cast<size_t>(place) * channels;
        ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
          const auto sum = hn::LoadU(tag, sums + i);
          hn::StoreU(hn::Add(sum, LoadNumbers(tag, row + i)), tag, sums + i);
        });
      }
    });
    ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(tag, sums + i), hn::Set(tag, scale)), tag, sums + i);
    });
    if (dtable.is_float()) continue;
    VisitNumbers(dtable + begin, [&](auto* to) HWY_ATTR { Encode(copy, count, to); });
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(EmbedToken);
HWY_EXPORT(FillRow);
HWY_EXPORT(SumPlaces);

namespace {

// What a call of embedding does; sentences share the vectors of positions, which are computed in
// scratch for a block of times at once. Without advance all times share one vector.
struct EmbeddingCall {
  // 128 KiB of positions: few blocks even for long sentences, and little beside their tensors.
  static constexpr size_t kPositionFloats = size_t{1} << 15;

  EmbeddingCall(const Shape& tokens, const Shape& table, const Attributes& attributes)
      : sentences(static_cast<size_t>(tokens[0])),
        times(static_cast<size_t>(tokens[1])),
        words(static_cast<size_t>(table[0])),
        channels(static_cast<size_t>(table[1])),
        advance(attributes.Int("advance")),
        has_positions(attributes.Int("positions") != 0) {}

  bool empty() const { return sentences * times * channels == 0; }
  // Times in a block.
  size_t times_at_once() const {
    return advance == 0 ? times : std::min(times, std::max<size_t>(1, kPositionFloats / channels));
  }
  // Vectors of positions for so many times, and floats from that of a time to that of the next.
  size_t vectors(size_t block_times) const { return advance == 0 ? 1 : block_times; }
  size_t vector_stride() const { return advance == 0 ? 0 : channels; }

  size_t sentences;
  size_t times;
  size_t words;
  size_t channels;
  int64_t advance;
  bool has_positions;
};

// positions: (count, C), for positions from `first` on, `advance` apart.
void ComputePositions(ThreadPool& pool, double first, double advance, size_t count, size_t channels,
                      float* positions) {
  constexpr size_t kFrequencies = 16;  // a cache line of each position
  const size_t half = channels / 2;
  pool.Run((half + kFrequencies - 1) / kFrequencies, [&](size_t chunk, size_t /*thread*/) {
    const size_t end = std::min(half, (chunk + 1) * kFrequencies);
    for (size_t i = chunk * kFrequencies; i < end; ++i) {
      const double frequency =
          PositionFrequency(static_cast<int64_t>(i), static_cast<int64_t>(channels));
      for (size_t k = 0; k < count; ++k) {
        const double angle = (first + advance * static_cast<double>(k)) * frequency;
        positions[k * channels + i] = static_cast<float>(std::sin(angle));
        positions[k * channels + half + i] = static_cast<float>(std::cos(angle));
      }
    }
  });
}

// Times [begin, end) of all sentences. positions: the vectors of these times, or null.
void EmbedTimes(const KernelCall& call, const EmbeddingCall& sizes, size_t begin, size_t end,
                const float* positions) {
  const auto scale = static_cast<float>(call.attributes.Float("scale"));
  const int64_t padding = call.attributes.Int("padding");
  const size_t channels = sizes.channels;
  const size_t times = end - begin;
  const size_t rows_per_chunk = std::max<size_t>(1, kElementsPerChunk / channels);
  const size_t rows = sizes.sentences * times;
  call.pool.Run((rows + rows_per_chunk - 1) / rows_per_chunk, [&](size_t chunk, size_t) {
    const size_t end_row = std::min(rows, (chunk + 1) * rows_per_chunk);
    for (size_t row = chunk * rows_per_chunk; row < end_row; ++row) {
      const size_t time = row % times;
      const size_t place = row / times * sizes.times + begin + time;
      const int32_t token = call.In<int32_t>(0)[place];
      const Numbers y = NumbersOf(call.outputs[0]) + place * channels;
      if (token < 0 || static_cast<size_t>(token) >= sizes.words) {
        HWY_DYNAMIC_DISPATCH(FillRow)(std::numeric_limits<float>::quiet_NaN(), channels, y);
      } else if (token == padding) {
        HWY_DYNAMIC_DISPATCH(FillRow)(0, channels, y);
      } else {
        const float* position =
            positions == nullptr ? nullptr : positions + time * sizes.vector_stride();
        const ConstNumbers table = ConstNumbersOf(call.inputs[1]);
        HWY_DYNAMIC_DISPATCH(EmbedToken)
        (table + static_cast<size_t>(token) * channels, scale, position, channels, y);
      }
    }
  });
}

// Lists the places of each token but `padding`, first to last. next, head: see TokenPlaces.
void ListPlaces(std::span<const int32_t> tokens, int64_t padding, std::span<int32_t> head,
                std::span<int32_t> next) {
  std::ranges::fill(head, kNoPlace);
  for (size_t place = tokens.size(); place-- > 0;) {
    const int32_t token = tokens[place];
    const bool counts = token >= 0 && static_cast<size_t>(token) < head.size() && token != padding;
    next[place] = counts ? head[static_cast<size_t>(token)] : kNoPlace;
    if (counts) head[static_cast<size_t>(token)] = static_cast<int32_t>(place);
  }
}

}  // namespace

size_t EmbeddingCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const EmbeddingCall sizes(call.inputs[0], call.inputs[1], call.attributes);
  if (!sizes.has_positions || sizes.empty()) return 0;
  return sizes.vectors(sizes.times_at_once()) * sizes.channels * sizeof(float);
}

void EmbeddingCpu::Run(const KernelCall& call) {
  const EmbeddingCall sizes(call.in_shape(0), call.in_shape(1), call.attributes);
  if (sizes.empty()) return;
  if (!sizes.has_positions) return EmbedTimes(call, sizes, 0, sizes.times, nullptr);
  const int64_t offset = call.inputs.size() > 2 ? call.In<int32_t>(2)[0] : 0;
  const auto first = static_cast<double>(call.attributes.Int("first_position") + offset);
  const auto advance = static_cast<double>(sizes.advance);
  float* positions = reinterpret_cast<float*>(call.scratch.data());
  for (size_t begin = 0; begin < sizes.times; begin += sizes.times_at_once()) {
    const size_t end = std::min(sizes.times, begin + sizes.times_at_once());
    ComputePositions(call.pool, first + advance * static_cast<double>(begin), advance,
                     sizes.vectors(end - begin), sizes.channels, positions);
    EmbedTimes(call, sizes, begin, end, positions);
  }
}

// Scratch: the lists of places.
size_t EmbeddingGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const int64_t numbers = call.outputs[0][0] + call.inputs[0].elements();
  return static_cast<size_t>(numbers) * sizeof(int32_t);
}

void EmbeddingGradCpu::Run(const KernelCall& call) {
  // Few: frequent words are often neighbours, and one thread should not have most of the places.
  constexpr size_t kWords = 8;
  const auto places = static_cast<size_t>(call.in_shape(0).elements());
  const auto words = static_cast<size_t>(call.out_shape(0)[0]);
  const auto channels = static_cast<size_t>(call.out_shape(0)[1]);
  int32_t* head = reinterpret_cast<int32_t*>(call.scratch.data());
  int32_t* next = head + words;
  ListPlaces({call.In<int32_t>(0), places}, call.attributes.Int("padding"), {head, words},
             {next, places});
  const TokenPlaces lists{head, next};
  const auto scale = static_cast<float>(call.attributes.Float("scale"));
  const ConstNumbers dy = ConstNumbersOf(call.inputs[1]);
  call.pool.Run((words + kWords - 1) / kWords, [&](size_t chunk, size_t /*thread*/) {
    for (size_t word = chunk * kWords; word < std::min(words, (chunk + 1) * kWords); ++word) {
      const Numbers row = NumbersOf(call.outputs[0]) + word * channels;
      if (head[word] == kNoPlace) {
        HWY_DYNAMIC_DISPATCH(FillRow)(0, channels, row);
      } else {
        HWY_DYNAMIC_DISPATCH(SumPlaces)(lists, head[word], dy, channels, scale, row);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
