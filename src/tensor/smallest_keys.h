// Which of many keys are the k smallest, found by counting instead of sorting: the keys are visited
// two or three times and not stored. The answer depends on the keys and the order of their
// positions alone, so that every device and any number of threads choose the same ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace thimble {

// The choice: keys below `below`, and of those equal to it the first `equal` in the order of
// positions.
struct SmallestKeys {
  uint64_t below = 0;  // up to 2^32
  int64_t equal = 0;

  // Whether the next key is chosen. To be called for all keys, in the order of positions.
  bool Take(uint32_t key) { return key < below || (key == below && equal-- > 0); }
};

struct KeyRange {
  uint32_t first = 0;
  uint32_t last = UINT32_MAX;  // included

  constexpr bool Contains(uint32_t key) const { return key >= first && key <= last; }
};

// The smallest `wanted` keys; there must be at least that many. visit_keys(range, visit) calls
// visit(key) for each key in the range, in any order; it may also do so for keys outside of it.
template <class VisitKeys>
SmallestKeys FindSmallestKeys(int64_t wanted, const VisitKeys& visit_keys) {
  constexpr int kDigitBits = 11;  // 8 KiB of counts: they stay in the first-level cache
  KeyRange range;                 // that of the largest key chosen
  for (int shift = 32; shift > 0;) {
    const int digit_bits = std::min(kDigitBits, shift);
    shift -= digit_bits;
    const uint32_t last_digit = (1U << digit_bits) - 1;
    std::array<uint32_t, 1U << kDigitBits> counts = {};
    visit_keys(range, [&](uint32_t key) {
      if (range.Contains(key)) ++counts[key >> shift & last_digit];
    });
    uint32_t digit = 0;
    while (digit < last_digit && counts[digit] < wanted) wanted -= counts[digit++];
    range.first |= digit << shift;
    range.last = range.first | ((1U << shift) - 1);
    if (counts[digit] == wanted) return {uint64_t{range.last} + 1, 0};
  }
  return {range.first, wanted};
}

}  // namespace thimble
