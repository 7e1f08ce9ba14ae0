// Philox4x32-10 of base/philox.h on the lanes of a vector, for code that Highway compiles once per
// SIMD target. Gives the same words.

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_DEVICE_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_DEVICE_CPU_PHILOX_INL_H_
#undef THIMBLE_DEVICE_CPU_PHILOX_INL_H_
#else
#define THIMBLE_DEVICE_CPU_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "thimble/base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

// Writes at least `count` words: four per counter, in order, from `first` on, incrementing the
// counter's first number. `words` is aligned and has space for `count` rounded up to a multiple of
// 32.
HWY_INLINE void PhiloxWords(std::array<uint32_t, 2> key, std::array<uint32_t, 4> first,
                            size_t count, uint32_t* words) {
  for (size_t i = 0; i < count; i += 4, ++first[0]) {
    const std::array<uint32_t, 4> drawn = Philox4x32(key, first);
    std::copy(drawn.begin(), drawn.end(), words + i);
  }
}

#else

// At most 8 counters at once, one in the low half of each 64-bit lane, because products have 64
// bits.
using PhiloxTag = hwy::HWY_NAMESPACE::CappedTag<uint64_t, 8>;
using PhiloxVector = hwy::HWY_NAMESPACE::Vec<PhiloxTag>;

// The product of the low halves.
HWY_INLINE PhiloxVector MultiplyLow(PhiloxVector a, PhiloxVector b) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Repartition<uint32_t, PhiloxTag> halves;
  return hn::MulEven(hn::BitCast(halves, a), hn::BitCast(halves, b));
}

// The rounds for one counter in each lane. High halves are unspecified, before and after.
HWY_INLINE void PhiloxRounds(std::array<uint32_t, 2> key, PhiloxVector (&counter)[4]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const PhiloxTag tag;
  const auto multiplier0 = hn::Set(tag, kPhiloxMultiplier0);
  const auto multiplier1 = hn::Set(tag, kPhiloxMultiplier1);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const auto product0 = MultiplyLow(multiplier0, counter[0]);
    const auto product1 = MultiplyLow(multiplier1, counter[2]);
    const auto key0 = hn::Set(tag, uint64_t{key[0]});
    const auto key1 = hn::Set(tag, uint64_t{key[1]});
    counter[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), counter[1]), key0);
    counter[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), counter[3]), key1);
    counter[1] = product1;
    counter[3] = product0;
    key[0] += kPhiloxIncrement0;
    key[1] += kPhiloxIncrement1;
  }
}

// As above.
HWY_INLINE void PhiloxWords(std::array<uint32_t, 2> key, std::array<uint32_t, 4> first,
                            size_t count, uint32_t* words) {
  namespace hn = hwy::HWY_NAMESPACE;
  const PhiloxTag tag;
  const hn::Repartition<uint32_t, PhiloxTag> halves;
  const size_t lanes = hn::Lanes(tag);
  auto index = hn::Add(hn::Iota(tag, 0), hn::Set(tag, uint64_t{first[0]}));
  for (size_t i = 0; i < count; i += 4 * lanes) {
    PhiloxVector counter[4] = {index, hn::Set(tag, uint64_t{first[1]}),
                               hn::Set(tag, uint64_t{first[2]}), hn::Set(tag, uint64_t{first[3]})};
    PhiloxRounds(key, counter);
    const auto pair = [&](size_t low) HWY_ATTR {
      const auto high = hn::BitCast(halves, hn::ShiftLeft<32>(counter[low + 1]));
      return hn::BitCast(tag, hn::OddEven(high, hn::BitCast(halves, counter[low])));
    };
    hn::StoreInterleaved2(pair(0), pair(2), tag, reinterpret_cast<uint64_t*>(words + i));
    index = hn::Add(index, hn::Set(tag, uint64_t{lanes}));
  }
}

#endif  // HWY_TARGET

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
