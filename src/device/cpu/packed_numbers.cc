#include "thimble/device/cpu/packed_numbers.h"

#include <algorithm>
#include <bit>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/packed_numbers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

// Positions whose numbers are converted at a time, and those whose bits are looked at together.
constexpr size_t kPiece = 256;
constexpr size_t kGroup = kPatternWordBits;
constexpr size_t kWidestVector = 16;

// The bits of up to kGroup positions; zeros behind them.
HWY_INLINE uint32_t BitsAt(const uint32_t* bits, size_t first, size_t count) {
  const size_t word = first / kGroup;
  const size_t shift = first % kGroup;
  uint32_t group = bits[word] >> shift;
  // The next word may be behind the last one.
  if (shift + count > kGroup) group |= bits[word + 1] << (kGroup - shift);
  return count < kGroup ? group & ((uint32_t{1} << count) - 1) : group;
}

#if HWY_TARGET == HWY_AVX3

// Up to a vector of numbers; the rest is zero.
template <class Tag, class Stored>
HWY_INLINE hn::Vec<Tag> LoadAvailable(Tag tag, const Stored* numbers, size_t available) {
  if (available >= kWidestVector) return LoadNumbers(tag, numbers);
  alignas(64) float last[kWidestVector] = {};
  Decode(numbers, available, last);
  return hn::Load(tag, last);
}

// Elements [first, first + count), whose first active number is at `numbers`; `available` of them
// can be read. Returns how many there are.
template <class Stored>
HWY_INLINE size_t ExpandPiece(const uint32_t* bits, size_t first, size_t count,
                              const Stored* numbers, size_t available, float* to) {
  const hn::FixedTag<float, kWidestVector> tag;
  size_t taken = 0;
  for (size_t i = 0; i < count; i += kWidestVector) {
    const size_t positions = std::min(kWidestVector, count - i);
    const uint32_t group = BitsAt(bits, first + i, positions);
    const auto next = LoadAvailable(tag, numbers + taken, available - taken);
    const auto inside = static_cast<__mmask16>((uint32_t{1} << positions) - 1);
    _mm512_mask_storeu_ps(to + i, inside,
                          _mm512_maskz_expand_ps(static_cast<__mmask16>(group), next.raw));
    taken += static_cast<size_t>(std::popcount(group));
  }
  return taken;
}

#else

HWY_INLINE size_t CountActive(const uint32_t* bits, size_t first, size_t count) {
  size_t active = 0;
  for (size_t i = 0; i < count; i += kGroup) {
    const uint32_t group = BitsAt(bits, first + i, std::min(kGroup, count - i));
    active += static_cast<size_t>(std::popcount(group));
  }
  return active;
}

template <class Stored>
HWY_INLINE size_t ExpandPiece(const uint32_t* bits, size_t first, size_t count,
                              const Stored* numbers, size_t available, float* to) {
  alignas(64) float copy[kPiece + kWidestVector];
  const float* next = copy;
  if constexpr (std::is_same_v<Stored, float>) {
    next = numbers;
  } else {
    // Whole vectors, if there are as many numbers.
    const size_t active = CountActive(bits, first, count);
    const size_t whole = (active + kWidestVector - 1) / kWidestVector * kWidestVector;
    Decode(numbers, std::min(whole, available), copy);
  }
  std::fill_n(to, count, 0.0F);
  size_t taken = 0;
  for (size_t i = 0; i < count; i += kGroup) {
    uint32_t group = BitsAt(bits, first + i, std::min(kGroup, count - i));
    for (; group != 0; group &= group - 1)
      to[i + static_cast<size_t>(std::countr_zero(group))] = next[taken++];
  }
  return taken;
}

#endif

template <class Stored>
HWY_INLINE void ExpandRows(const Stored* numbers, const PackedPlace& place, size_t first,
                           const NumberRows& rows, float* to) {
  const size_t all = place.count();
  for (size_t row = 0; row < rows.rows; ++row, first += rows.from_stride, to += rows.to_stride) {
    size_t rank = rows.count == 0 ? 0 : place.Rank(first);
    for (size_t i = 0; i < rows.count; i += kPiece) {
      rank += ExpandPiece(place.bits, first + i, std::min(kPiece, rows.count - i), numbers + rank,
                          all - rank, to + i);
    }
  }
}

void ExpandAll(const Elements& from, size_t first, const NumberRows& rows, float* to) {
  VisitNumbers(from.numbers, [&](const auto* stored)
                                 HWY_ATTR { ExpandRows(stored, from.place, first, rows, to); });
}

// The floats at the bits that are set. Returns how many there are.
HWY_INLINE size_t CompressGroup(uint32_t group, const float* from, size_t count, float* to) {
  size_t taken = 0;
#if HWY_TARGET == HWY_AVX3
  if (count == kGroup) {
    // A vector is read before its place can be written, and there is space for all of it.
    for (size_t i = 0; i < kGroup; i += kWidestVector, group >>= kWidestVector) {
      const auto active = static_cast<__mmask16>(group);
      const auto all = _mm512_loadu_ps(from + i);
      _mm512_storeu_ps(to + taken, _mm512_maskz_compress_ps(active, all));
      taken += static_cast<size_t>(std::popcount(uint32_t{active}));
    }
    return taken;
  }
#else
  static_cast<void>(count);
#endif
  for (; group != 0; group &= group - 1) to[taken++] = from[std::countr_zero(group)];
  return taken;
}

size_t CompressAll(const PackedPlace& place, size_t first, size_t count, const float* from,
                   float* to) {
  size_t taken = 0;
  for (size_t i = 0; i < count; i += kGroup) {
    const size_t positions = std::min(kGroup, count - i);
    const uint32_t group = BitsAt(place.bits, first + i, positions);
    taken += CompressGroup(group, from + i, positions, to + taken);
  }
  return taken;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(ExpandAll);
HWY_EXPORT(CompressAll);

void DecodeElementRows(const Elements& from, size_t first, const NumberRows& rows, float* to) {
  if (!from.place.is_packed()) return DecodeNumberRows(from.numbers + first, rows, to);
  HWY_DYNAMIC_DISPATCH(ExpandAll)(from, first, rows, to);
}

void DecodeElements(const Elements& from, size_t first, size_t count, float* to) {
  const NumberRows row{.rows = 1, .count = count, .from_stride = 0, .to_stride = 0};
  DecodeElementRows(from, first, row, to);
}

size_t GatherActive(const PackedPlace& place, size_t first, size_t count, const float* from,
                    float* to) {
  return HWY_DYNAMIC_DISPATCH(CompressAll)(place, first, count, from, to);
}

}  // namespace thimble
#endif  // HWY_ONCE
