// Loads and stores vectors of numbers in any storage type, for code that Highway compiles once per
// SIMD target. Kernels with few loops use these; the others convert pieces (numbers.h).

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_DEVICE_CPU_NUMBERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_DEVICE_CPU_NUMBERS_INL_H_
#undef THIMBLE_DEVICE_CPU_NUMBERS_INL_H_
#else
#define THIMBLE_DEVICE_CPU_NUMBERS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

#include "thimble/base/check.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/simd_loops-inl.h"
#include "thimble/tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

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
HWY_INLINE hn::Vec<Bits<Tag>> ToBF16Bits(Tag /*tag*/, hn::Vec<Tag> number) {
  const Bits<Tag> bits;
  const auto all = hn::BitCast(bits, number);
  const auto upper = hn::ShiftRight<16>(all);
  const auto odd = hn::And(upper, hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(all, hn::Add(hn::Set(bits, 0x7FFF), odd)));
  const auto magnitude = hn::And(all, hn::Set(bits, 0x7FFFFFFF));
  const auto is_nan = hn::Gt(magnitude, hn::Set(bits, 0x7F800000));
  return hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(bits, 0x40)), rounded);
}

// The numbers of a vector, from memory.
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadNumbers(Tag tag, const float* from) {
  return hn::LoadU(tag, from);
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadNumbers(Tag tag, const F16* from) {
  if constexpr (kF16ByHardware) {
    const hn::Rebind<hwy::float16_t, Tag> short_tag;
    return hn::PromoteTo(tag, hn::LoadU(short_tag, reinterpret_cast<const hwy::float16_t*>(from)));
  } else {
    return FromF16Bits(tag, LoadHalves(tag, &from->bits));
  }
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadNumbers(Tag tag, const BF16* from) {
  return hn::BitCast(tag, hn::ShiftLeft<16>(LoadHalves(tag, &from->bits)));
}

// The numbers of a vector, to memory; rounds to the nearest, ties to even.
template <class Tag>
HWY_INLINE void StoreNumbers(hn::Vec<Tag> numbers, Tag tag, float* to) {
  hn::StoreU(numbers, tag, to);
}

template <class Tag>
HWY_INLINE void StoreNumbers(hn::Vec<Tag> numbers, Tag tag, F16* to) {
  if constexpr (kF16ByHardware) {
    const hn::Rebind<hwy::float16_t, Tag> short_tag;
    hn::StoreU(hn::DemoteTo(short_tag, numbers), short_tag, reinterpret_cast<hwy::float16_t*>(to));
  } else {
    StoreHalves(tag, ToF16Bits(tag, numbers), &to->bits);
  }
}

template <class Tag>
HWY_INLINE void StoreNumbers(hn::Vec<Tag> numbers, Tag tag, BF16* to) {
  StoreHalves(tag, ToBF16Bits(tag, numbers), &to->bits);
}

// Stochastic rounding with the lower 16 bits of each lane of `random`; the results can be stored
// exactly. The same steps as in short_numbers.h.
template <class Tag>
HWY_INLINE hn::Vec<Tag> RoundAtRandom(Tag tag, hn::Vec<Tag> number, hn::Vec<Bits<Tag>> random,
                                      const F16* /*stored*/) {
  const Bits<Tag> bits;
  const auto all = hn::BitCast(bits, number);
  const auto magnitude = hn::And(all, hn::Set(bits, 0x7FFFFFFF));
  const auto is_small = hn::Lt(magnitude, hn::Set(bits, 0x38800000));
  const auto shift = hn::IfThenElseZero(hn::RebindMask(tag, is_small), hn::Set(tag, 0x1p-14F));
  const auto shifted = hn::BitCast(bits, hn::Add(hn::BitCast(tag, magnitude), shift));
  const auto low = hn::Set(bits, 0x1FFF);
  const auto cut = hn::AndNot(low, hn::Add(shifted, hn::And(random, low)));
  const auto rounded = hn::CopySign(hn::Sub(hn::BitCast(tag, cut), shift), number);
  const auto too_large = hn::Gt(magnitude, hn::Set(bits, 0x477FDFFF));
  return hn::IfThenElse(hn::RebindMask(tag, too_large), number, rounded);
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> RoundAtRandom(Tag tag, hn::Vec<Tag> number, hn::Vec<Bits<Tag>> random,
                                      const BF16* /*stored*/) {
  const Bits<Tag> bits;
  const auto all = hn::BitCast(bits, number);
  const auto magnitude = hn::And(all, hn::Set(bits, 0x7FFFFFFF));
  const auto low = hn::Set(bits, 0xFFFF);
  const auto rounded = hn::AndNot(low, hn::Add(all, hn::And(random, low)));
  const auto too_large = hn::Gt(magnitude, hn::Set(bits, 0x7F7EFFFF));
  return hn::BitCast(tag, hn::IfThenElse(too_large, all, rounded));
}

// Calls visit with the address as a pointer to the stored type.
template <class Void, class Visit>
HWY_INLINE void VisitNumbers(const NumberPointer<Void>& numbers, const Visit& visit) {
  using Half = std::conditional_t<std::is_const_v<Void>, const F16, F16>;
  using Brain = std::conditional_t<std::is_const_v<Void>, const BF16, BF16>;
  if (numbers.type == DType::kF16) return visit(static_cast<Half*>(numbers.data));
  if (numbers.type == DType::kBF16) return visit(static_cast<Brain*>(numbers.data));
  THIMBLE_CHECK(numbers.is_float(), "{} does not store numbers", Name(numbers.type));
  visit(numbers.floats());
}

// For a few vectors in a loop over something else.
template <class Tag>
HWY_INLINE hn::Vec<Tag> LoadNumbersOfAnyType(Tag tag, const ConstNumbers& from, size_t i) {
  if (from.type == DType::kF16) return LoadNumbers(tag, static_cast<const F16*>(from.data) + i);
  if (from.type == DType::kBF16) return LoadNumbers(tag, static_cast<const BF16*>(from.data) + i);
  return LoadNumbers(tag, from.floats() + i);
}

template <class Stored>
HWY_INLINE void Decode(const Stored* from, size_t count, float* to) {
  ForEachVector(count, [=](auto tag, size_t i)
                           HWY_ATTR { hn::StoreU(LoadNumbers(tag, from + i), tag, to + i); });
}

template <class Stored>
HWY_INLINE void Encode(const float* from, size_t count, Stored* to) {
  ForEachVector(count, [=](auto tag, size_t i)
                           HWY_ATTR { StoreNumbers(hn::LoadU(tag, from + i), tag, to + i); });
}

template <class Stored>
HWY_INLINE void EncodeAtRandom(const float* from, size_t count, const uint32_t* words, int shift,
                               Stored* to) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const Bits<decltype(tag)> bits;
    const auto random = hn::ShiftRightSame(hn::LoadU(bits, words + i), shift);
    const auto rounded = RoundAtRandom(tag, hn::LoadU(tag, from + i), random, to);
    StoreNumbers(rounded, tag, to + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
