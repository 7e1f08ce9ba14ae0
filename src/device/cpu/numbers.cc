#include "thimble/device/cpu/numbers.h"

#include <algorithm>
#include <cstring>

#include "thimble/base/check.h"
#include "thimble/device/cpu/parallel_elements.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/numbers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Highway's own conversions truncate: to f16 where the hardware has none, to bf16 everywhere.
constexpr bool kF16ByHardware =
    HWY_TARGET != HWY_SSE4 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128;

template <class Tag>
using Bits = hn::RebindToUnsigned<Tag>;
template <class Tag>
using Halves = hn::Rebind<uint16_t, Tag>;

// 16 bits of each lane, with zeros above them.
template <class Tag>
HWY_INLINE hn::Vec<Bits<Tag>> LoadHalves(Tag /*tag*/, const uint16_t* from) {
  return hn::PromoteTo(Bits<Tag>(), hn::LoadU(Halves<Tag>(), from));
}

// The lower 16 bits of each lane. Requires zeros above them.
template <class Tag>
HWY_INLINE void StoreHalves(Tag /*tag*/, hn::Vec<Bits<Tag>> halves, uint16_t* to) {
  const hn::RebindToSigned<Tag> signed_bits;
  hn::StoreU(hn::DemoteTo(Halves<Tag>(), hn::BitCast(signed_bits, halves)), Halves<Tag>(), to);
}

// The same steps as in short_numbers.h.
template <class Tag>
HWY_INLINE hn::Vec<Tag> FromF16Bits(Tag tag, hn::Vec<Bits<Tag>> half) {
  const Bits<Tag> bits;
  const hn::RebindToSigned<Tag> integers;
  const auto magnitude = hn::And(half, hn::Set(bits, 0x7FFF));
  const auto sign = hn::ShiftLeft<16>(hn::Sub(half, magnitude));
  const auto small =
      hn::Mul(hn::ConvertTo(tag, hn::BitCast(integers, magnitude)), hn::Set(tag, 0x1p-24F));
  const auto large = hn::Gt(magnitude, hn::Set(bits, 0x7BFF));
  const auto exponent = hn::IfThenElse(large, hn::Set(bits, 0x38000), hn::Set(bits, 0x1C000));
  const auto normal = hn::ShiftLeft<13>(hn::Add(magnitude, exponent));
  const auto is_small = hn::Lt(magnitude, hn::Set(bits, 0x400));
  const auto number = hn::IfThenElse(is_small, hn::BitCast(bits, small), normal);
  return hn::BitCast(tag, hn::Or(sign, number));
}

template <class Tag>
HWY_INLINE hn::Vec<Bits<Tag>> ToF16Bits(Tag tag, hn::Vec<Tag> number) {
  const Bits<Tag> bits;
  const auto all = hn::BitCast(bits, number);
  const auto magnitude = hn::And(all, hn::Set(bits, 0x7FFFFFFF));
  const auto sign = hn::ShiftRight<16>(hn::Sub(all, magnitude));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(bits, 1));
  const auto moved = hn::Sub(magnitude, hn::Set(bits, 0x38000000 - 0xFFF));
  const auto normal = hn::ShiftRight<13>(hn::Add(moved, odd));
  const auto shifted = hn::Add(hn::BitCast(tag, magnitude), hn::Set(tag, 0.5F));
  const auto small = hn::Sub(hn::BitCast(bits, shifted), hn::Set(bits, 0x3F000000));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(bits, 0x3FF));
  const auto nan = hn::Or(hn::Set(bits, 0x7E00), payload);
  auto half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, 0x38800000)), small, normal);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(bits, 0x477FEFFF)), hn::Set(bits, 0x7C00), half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(bits, 0x7F800000)), nan, half);
  return hn::Or(sign, half);
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> FromF16(Tag tag, const uint16_t* from) {
  if constexpr (kF16ByHardware) {
    const hn::Rebind<hwy::float16_t, Tag> short_tag;
    return hn::PromoteTo(tag, hn::LoadU(short_tag, reinterpret_cast<const hwy::float16_t*>(from)));
  } else {
    return FromF16Bits(tag, LoadHalves(tag, from));
  }
}

template <class Tag>
HWY_INLINE void ToF16(Tag tag, hn::Vec<Tag> number, uint16_t* to) {
  if constexpr (kF16ByHardware) {
    const hn::Rebind<hwy::float16_t, Tag> short_tag;
    hn::StoreU(hn::DemoteTo(short_tag, number), short_tag, reinterpret_cast<hwy::float16_t*>(to));
  } else {
    StoreHalves(tag, ToF16Bits(tag, number), to);
  }
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> FromBF16(Tag tag, const uint16_t* from) {
  return hn::BitCast(tag, hn::ShiftLeft<16>(LoadHalves(tag, from)));
}

template <class Tag>
HWY_INLINE void ToBF16(Tag tag, hn::Vec<Tag> number, uint16_t* to) {
  const Bits<Tag> bits;
  const auto all = hn::BitCast(bits, number);
  const auto upper = hn::ShiftRight<16>(all);
  const auto odd = hn::And(upper, hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(all, hn::Add(hn::Set(bits, 0x7FFF), odd)));
  const auto magnitude = hn::And(all, hn::Set(bits, 0x7FFFFFFF));
  const auto is_nan = hn::Gt(magnitude, hn::Set(bits, 0x7F800000));
  StoreHalves(tag, hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(bits, 0x40)), rounded), to);
}

void DecodeF16(const uint16_t* from, size_t count, float* to) {
  ForEachVector(
      count, [=](auto tag, size_t i) HWY_ATTR { hn::StoreU(FromF16(tag, from + i), tag, to + i); });
}

void DecodeBF16(const uint16_t* from, size_t count, float* to) {
  ForEachVector(count, [=](auto tag, size_t i)
                           HWY_ATTR { hn::StoreU(FromBF16(tag, from + i), tag, to + i); });
}

void EncodeF16(const float* from, size_t count, uint16_t* to) {
  ForEachVector(count,
                [=](auto tag, size_t i) HWY_ATTR { ToF16(tag, hn::LoadU(tag, from + i), to + i); });
}

void EncodeBF16(const float* from, size_t count, uint16_t* to) {
  ForEachVector(
      count, [=](auto tag, size_t i) HWY_ATTR { ToBF16(tag, hn::LoadU(tag, from + i), to + i); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DecodeF16);
HWY_EXPORT(DecodeBF16);
HWY_EXPORT(EncodeF16);
HWY_EXPORT(EncodeBF16);

void DecodeNumbers(const TensorView& from, size_t begin, size_t count, float* to) {
  switch (from.dtype) {
    case DType::kF32:
      std::memcpy(to, from.DataAs<const float>() + begin, count * sizeof(float));
      return;
    case DType::kF16:
      HWY_DYNAMIC_DISPATCH(DecodeF16)(&from.DataAs<const F16>()[begin].bits, count, to);
      return;
    case DType::kBF16:
      HWY_DYNAMIC_DISPATCH(DecodeBF16)(&from.DataAs<const BF16>()[begin].bits, count, to);
      return;
    case DType::kU8:
    case DType::kI32:
      break;
  }
  THIMBLE_CHECK(false, "{} does not store numbers", Name(from.dtype));
}

void EncodeNumbers(const float* from, size_t begin, size_t count, const TensorView& to) {
  switch (to.dtype) {
    case DType::kF32:
      std::memcpy(to.DataAs<float>() + begin, from, count * sizeof(float));
      return;
    case DType::kF16:
      HWY_DYNAMIC_DISPATCH(EncodeF16)(from, count, &to.DataAs<F16>()[begin].bits);
      return;
    case DType::kBF16:
      HWY_DYNAMIC_DISPATCH(EncodeBF16)(from, count, &to.DataAs<BF16>()[begin].bits);
      return;
    case DType::kU8:
    case DType::kI32:
      break;
  }
  THIMBLE_CHECK(false, "{} does not store numbers", Name(to.dtype));
}

const float* ReadNumbers(const TensorView& from, size_t begin, size_t count, float* copy) {
  if (from.dtype == DType::kF32) return from.DataAs<const float>() + begin;
  DecodeNumbers(from, begin, count, copy);
  return copy;
}

float* RoomForNumbers(const TensorView& to, size_t begin, float* copy) {
  return to.dtype == DType::kF32 ? to.DataAs<float>() + begin : copy;
}

void WriteNumbers(const float* room, size_t begin, size_t count, const TensorView& to) {
  if (to.dtype != DType::kF32) EncodeNumbers(room, begin, count, to);
}

void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs,
                     FunctionRef<void(const NumberPiece&)> body) {
  constexpr size_t kMax = NumberPiece::kMaxTensors;
  THIMBLE_CHECK(inputs.size() <= kMax && outputs.size() <= kMax && !outputs.empty());
  const auto is_float = [](const TensorView& view) { return view.dtype == DType::kF32; };
  const bool all_floats =
      std::ranges::all_of(inputs, is_float) && std::ranges::all_of(outputs, is_float);
  const size_t piece_numbers = all_floats ? kElementsPerChunk : kNumbersPerPiece;
  const auto elements = static_cast<size_t>(outputs[0].shape.elements());
  ParallelElements(pool, elements, [&](size_t chunk_begin, size_t chunk_end) {
    alignas(64) float in_copies[kMax][kNumbersPerPiece];
    alignas(64) float out_copies[kMax][kNumbersPerPiece];
    for (size_t begin = chunk_begin; begin < chunk_end; begin += piece_numbers) {
      NumberPiece piece{{}, {}, begin, std::min(piece_numbers, chunk_end - begin)};
      for (size_t i = 0; i < inputs.size(); ++i) {
        piece.in[i] = ReadNumbers(inputs[i], begin, piece.count, in_copies[i]);
      }
      for (size_t o = 0; o < outputs.size(); ++o) {
        piece.out[o] = RoomForNumbers(outputs[o], begin, out_copies[o]);
      }
      body(piece);
      for (size_t o = 0; o < outputs.size(); ++o) {
        WriteNumbers(piece.out[o], begin, piece.count, outputs[o]);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
