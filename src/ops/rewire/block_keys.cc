#include "thimble/ops/rewire/block_keys.h"

#include <cstring>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/rewire/block_keys.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A bit for each of 32 keys.
uint32_t BitsInRange(const uint32_t* keys, KeyRange range) {
  const hn::CappedTag<uint32_t, kPatternWordBits> tag;
  const auto first = hn::Set(tag, range.first);
  const auto last = hn::Set(tag, range.last);
  uint32_t bits = 0;
  for (size_t i = 0; i < kPatternWordBits; i += hn::Lanes(tag)) {
    const auto key = hn::LoadU(tag, keys + i);
    uint8_t bytes[8] = {};  // as many as StoreMaskBits may write
    hn::StoreMaskBits(tag, hn::Eq(key, hn::Min(hn::Max(key, first), last)), bytes);
    uint32_t mask;
    std::memcpy(&mask, bytes, sizeof(mask));
    bits |= mask << i;
  }
  return bits;
}

void DrawAndCompare(const RewireDraw& draw, int64_t block, KeyRange range, BlockKeys& keys) {
  const auto first = static_cast<uint32_t>(block * kPatternBlock / RewireDraw::kKeysPerDraw);
  PhiloxWords(draw.source.key(), draw.KeyCounter(first), kPatternBlock, keys.keys);
  for (int64_t word = 0; word < kPatternBlockWords; ++word) {
    keys.in_range[word] = BitsInRange(keys.keys + word * kPatternWordBits, range);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DrawAndCompare);

void DrawBlockKeys(const RewireDraw& draw, int64_t block, KeyRange range, BlockKeys& keys) {
  HWY_DYNAMIC_DISPATCH(DrawAndCompare)(draw, block, range, keys);
}

}  // namespace thimble
#endif  // HWY_ONCE
