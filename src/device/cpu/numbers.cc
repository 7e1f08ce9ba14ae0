#include "thimble/device/cpu/numbers.h"

#include <algorithm>
#include <cstring>

#include "thimble/base/check.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/tensor/short_numbers.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/numbers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/device/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

template <class Stored>
HWY_INLINE void DecodeRows(const Stored* from, const NumberRows& rows, float* to) {
  for (size_t row = 0; row < rows.rows; ++row) {
    Decode(from + row * rows.from_stride, rows.count, to + row * rows.to_stride);
  }
}

template <class Stored>
HWY_INLINE void AddRows(const Stored* from, const NumberRows& rows, float* to) {
  for (size_t row = 0; row < rows.rows; ++row) {
    const Stored* numbers = from + row * rows.from_stride;
    float* sums = to + row * rows.to_stride;
    ForEachVector(rows.count, [=](auto tag, size_t i) HWY_ATTR {
      const auto added = LoadNumbers(tag, numbers + i);
      hn::StoreU(hn::Add(hn::LoadU(tag, sums + i), added), tag, sums + i);
    });
  }
}

template <class Stored>
HWY_INLINE void EncodeRows(const float* from, const NumberRows& rows, Stored* to) {
  for (size_t row = 0; row < rows.rows; ++row) {
    Encode(from + row * rows.from_stride, rows.count, to + row * rows.to_stride);
  }
}

// A block of q8, or what is left of it: the scale, then the integers.
HWY_INLINE void DecodeBlock(const std::byte* block, size_t count, float* to) {
  float scale;
  std::memcpy(&scale, block, sizeof(scale));
  const auto* integers = reinterpret_cast<const int8_t*>(block + sizeof(scale));
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::Rebind<int8_t, decltype(tag)> byte_tag;
    const hn::RebindToSigned<decltype(tag)> int_tag;
    const auto wide = hn::PromoteTo(int_tag, hn::LoadU(byte_tag, integers + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(tag, wide), hn::Set(tag, scale)), tag, to + i);
  });
}

// Compared as integers, NaN is larger than all numbers.
HWY_INLINE float LargestMagnitude(const float* numbers, size_t count) {
  const WideTag tag;
  const Bits<WideTag> bits;
  const size_t lanes = hn::Lanes(tag);
  auto largest = hn::Zero(bits);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto number = hn::BitCast(bits, hn::LoadU(tag, numbers + i));
    largest = hn::Max(largest, hn::And(number, hn::Set(bits, 0x7FFFFFFF)));
  }
  uint32_t result = hn::GetLane(hn::MaxOfLanes(bits, largest));
  for (; i < count; ++i) {
    result = std::max(result, std::bit_cast<uint32_t>(numbers[i]) & 0x7FFFFFFFU);
  }
  return std::bit_cast<float>(result);
}

// Without words: rounds to the nearest.
HWY_INLINE void EncodeBlock(const float* from, size_t count, const uint32_t* words, int shift,
                            std::byte* block) {
  const float scale = Q8Scale(LargestMagnitude(from, count));
  const float inverse = Q8Inverse(scale);
  std::memcpy(block, &scale, sizeof(scale));
  auto* integers = reinterpret_cast<int8_t*>(block + sizeof(scale));
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const Bits<decltype(tag)> bits;
    const hn::RebindToSigned<decltype(tag)> int_tag;
    const hn::Rebind<int8_t, decltype(tag)> byte_tag;
    auto level = hn::Mul(hn::LoadU(tag, from + i), hn::Set(tag, inverse));
    if (words == nullptr) {
      level = hn::Round(level);
    } else {
      const auto word = hn::ShiftRightSame(hn::LoadU(bits, words + i), shift);
      const auto random = hn::BitCast(int_tag, hn::And(word, hn::Set(bits, 0xFFFF)));
      const auto fraction = hn::Mul(hn::ConvertTo(tag, random), hn::Set(tag, 0x1p-16F));
      level = hn::Floor(hn::Add(level, fraction));
    }
    level = hn::Max(hn::Min(level, hn::Set(tag, 127.0F)), hn::Set(tag, -127.0F));
    const auto integer = hn::DemoteTo(byte_tag, hn::ConvertTo(int_tag, level));
    hn::StoreU(integer, byte_tag, integers + i);
  });
  // The padding is written too: its bytes must not depend on what was there before.
  for (size_t i = count; i % 4 != 0; ++i) integers[i] = 0;
}

HWY_INLINE void DecodeBlocks(const std::byte* from, size_t count, float* to) {
  for (size_t begin = 0; begin < count; begin += kQ8BlockNumbers, from += kQ8BlockBytes) {
    DecodeBlock(from, std::min(kQ8BlockNumbers, count - begin), to + begin);
  }
}

HWY_INLINE void EncodeBlocks(const float* from, size_t count, const uint32_t* words, int shift,
                             std::byte* to) {
  for (size_t begin = 0; begin < count; begin += kQ8BlockNumbers, to += kQ8BlockBytes) {
    const uint32_t* block_words = words == nullptr ? nullptr : words + begin;
    EncodeBlock(from + begin, std::min(kQ8BlockNumbers, count - begin), block_words, shift, to);
  }
}

void DecodeAll(ConstNumbers from, const NumberRows& rows, float* to) {
  if (from.type == DType::kQ8 && rows.rows == 1) {
    return DecodeBlocks(static_cast<const std::byte*>(from.data), rows.count, to);
  }
  VisitNumbers(from, [&](const auto* stored) HWY_ATTR { DecodeRows(stored, rows, to); });
}

void AddAll(ConstNumbers from, const NumberRows& rows, float* to) {
  VisitNumbers(from, [&](const auto* stored) HWY_ATTR { AddRows(stored, rows, to); });
}

void EncodeAll(const float* from, const NumberRows& rows, Numbers to) {
  if (to.type == DType::kQ8 && rows.rows == 1) {
    return EncodeBlocks(from, rows.count, nullptr, 0, static_cast<std::byte*>(to.data));
  }
  VisitNumbers(to, [&](auto* stored) HWY_ATTR { EncodeRows(from, rows, stored); });
}

void EncodeAllAtRandom(const float* from, size_t count, const uint32_t* words, int shift,
                       Numbers to) {
  switch (to.type) {
    case DType::kF16:
      return EncodeAtRandom(from, count, words, shift, static_cast<F16*>(to.data));
    case DType::kBF16:
      return EncodeAtRandom(from, count, words, shift, static_cast<BF16*>(to.data));
    case DType::kQ8:
      return EncodeBlocks(from, count, words, shift, static_cast<std::byte*>(to.data));
    default:
      THIMBLE_CHECK(false, "{} needs no rounding", Name(to.type));
  }
}

void DrawWords(const RoundingDraw& draw, size_t begin, size_t count, uint32_t* words) {
  const auto first = static_cast<uint32_t>(begin / RoundingDraw::kElementsPerDraw);
  PhiloxWords(draw.source.key(), draw.Counter(first), count, words);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DecodeAll);
HWY_EXPORT(AddAll);
HWY_EXPORT(EncodeAll);
HWY_EXPORT(EncodeAllAtRandom);
HWY_EXPORT(DrawWords);

void DecodeNumberRows(ConstNumbers from, const NumberRows& rows, float* to) {
  HWY_DYNAMIC_DISPATCH(DecodeAll)(from, rows, to);
}

void AddNumberRows(ConstNumbers from, const NumberRows& rows, float* to) {
  HWY_DYNAMIC_DISPATCH(AddAll)(from, rows, to);
}

void EncodeNumberRows(const float* from, const NumberRows& rows, Numbers to) {
  HWY_DYNAMIC_DISPATCH(EncodeAll)(from, rows, to);
}

void FillNumberRows(float value, const NumberRows& rows, Numbers to) {
  std::array<float, 64> piece;
  piece.fill(value);
  for (size_t row = 0; row < rows.rows; ++row) {
    for (size_t begin = 0; begin < rows.count; begin += piece.size()) {
      EncodeNumbers(piece.data(), std::min(piece.size(), rows.count - begin),
                    to + (row * rows.to_stride + begin));
    }
  }
}

void DecodeNumbers(ConstNumbers from, size_t count, float* to) {
  DecodeNumberRows(from, {.rows = 1, .count = count, .from_stride = 0, .to_stride = 0}, to);
}

void EncodeNumbers(const float* from, size_t count, Numbers to) {
  EncodeNumberRows(from, {.rows = 1, .count = count, .from_stride = 0, .to_stride = 0}, to);
}

void EncodeNumbersAtRandom(const float* from, size_t count, const uint32_t* words, int shift,
                           Numbers to) {
  HWY_DYNAMIC_DISPATCH(EncodeAllAtRandom)(from, count, words, shift, to);
}

void RoundNumbers(DType type, size_t count, float* numbers) {
  if (type == DType::kF32) return;
  std::array<uint16_t, kNumbersPerPiece> stored;
  for (size_t begin = 0; begin < count; begin += stored.size()) {
    const size_t piece = std::min(stored.size(), count - begin);
    EncodeNumbers(numbers + begin, piece, {stored.data(), type});
    DecodeNumbers({stored.data(), type}, piece, numbers + begin);
  }
}

const float* ReadNumbers(ConstNumbers from, size_t count, float* copy) {
  if (from.is_float()) return from.floats();
  DecodeNumbers(from, count, copy);
  return copy;
}

float* RoomForNumbers(Numbers to, float* copy) { return to.is_float() ? to.floats() : copy; }

void WriteNumbers(const float* room, size_t count, Numbers to) {
  if (!to.is_float()) EncodeNumbers(room, count, to);
}

namespace {

// Writes the results of a piece.
class PieceWriter {
 public:
  PieceWriter(const NumberRounding& rounding, std::span<const TensorView> outputs)
      : rounding_(rounding), outputs_(outputs) {}

  void Write(const NumberPiece& piece) const {
    if (std::ranges::all_of(outputs_, IsFloat)) return;
    alignas(64) uint32_t words[kNumbersPerPiece];
    constexpr size_t kNoOutput = NumberPiece::kMaxTensors;
    size_t drawn_for = kNoOutput;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (IsFloat(outputs_[o])) continue;
      if (rounding_.draw != nullptr && o / 2 != drawn_for / 2) {
        HWY_DYNAMIC_DISPATCH(DrawWords)
        (rounding_.draw->ForOutput(static_cast<int>(o)), rounding_.first_number + piece.begin,
         piece.count, words);
        drawn_for = o;
      }
      WriteOutput(piece, o, words);
      if (o == 0 && rounding_.first_written != nullptr) ShowFirst(piece);
    }
  }

 private:
  static bool IsFloat(const TensorView& view) { return view.dtype == DType::kF32; }

  void WriteOutput(const NumberPiece& piece, size_t o, const uint32_t* words) const {
    const Numbers to = NumbersOf(outputs_[o]) + piece.begin;
    if (rounding_.draw == nullptr) return EncodeNumbers(piece.out[o], piece.count, to);
    EncodeNumbersAtRandom(piece.out[o], piece.count, words,
                          RoundingDraw::ShiftOf(static_cast<int>(o)), to);
  }

  void ShowFirst(const NumberPiece& piece) const {
    alignas(64) float stored[kNumbersPerPiece];
    DecodeNumbers(ConstNumbersOf(outputs_[0]) + piece.begin, piece.count, stored);
    (*rounding_.first_written)(piece, stored);
  }

  const NumberRounding& rounding_;
  std::span<const TensorView> outputs_;
};

}  // namespace

void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, const NumberRounding& rounding,
                     FunctionRef<void(const NumberPiece&)> body) {
  constexpr size_t kMax = NumberPiece::kMaxTensors;
  THIMBLE_CHECK(inputs.size() <= kMax && outputs.size() <= kMax && !outputs.empty());
  const auto is_float = [](const TensorView& view) { return view.dtype == DType::kF32; };
  const bool all_floats =
      std::ranges::all_of(inputs, is_float) && std::ranges::all_of(outputs, is_float);
  const size_t piece_numbers = all_floats ? kElementsPerChunk : kNumbersPerPiece;
  std::array<TensorView, kMax> stored_in;
  std::array<TensorView, kMax> stored_out;
  std::ranges::transform(inputs, stored_in.begin(), StoredNumbers);
  std::ranges::transform(outputs, stored_out.begin(), StoredNumbers);
  inputs = {stored_in.data(), inputs.size()};
  outputs = {stored_out.data(), outputs.size()};
  const auto elements = static_cast<size_t>(outputs[0].shape.elements());
  const PieceWriter writer(rounding, outputs);
  ParallelElements(pool, elements, [&](size_t chunk_begin, size_t chunk_end) {
    alignas(64) float in_copies[kMax][kNumbersPerPiece];
    alignas(64) float out_copies[kMax][kNumbersPerPiece];
    for (size_t begin = chunk_begin; begin < chunk_end; begin += piece_numbers) {
      NumberPiece piece{{}, {}, begin, std::min(piece_numbers, chunk_end - begin)};
      for (size_t i = 0; i < inputs.size(); ++i) {
        piece.in[i] = ReadNumbers(ConstNumbersOf(inputs[i]) + begin, piece.count, in_copies[i]);
      }
      for (size_t o = 0; o < outputs.size(); ++o) {
        piece.out[o] = RoomForNumbers(NumbersOf(outputs[o]) + begin, out_copies[o]);
      }
      body(piece);
      writer.Write(piece);
    }
  });
}

void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs,
                     FunctionRef<void(const NumberPiece&)> body) {
  ParallelNumbers(pool, inputs, outputs, NumberRounding{}, body);
}

void CopyNumbers(ThreadPool& pool, const TensorView& from, const TensorView& to) {
  const TensorView stored_from = StoredNumbers(from);
  const TensorView stored_to = StoredNumbers(to);
  if (stored_from.dtype == stored_to.dtype) {
    if (stored_from.data == stored_to.data) return;
    std::memcpy(stored_to.data, stored_from.data, stored_from.size_bytes());
    return;
  }
  ParallelNumbers(pool, {&stored_from, 1}, {&stored_to, 1}, [](const NumberPiece& piece) {
    std::memcpy(piece.out[0], piece.in[0], piece.count * sizeof(float));
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
