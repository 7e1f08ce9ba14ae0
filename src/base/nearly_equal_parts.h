// Splits a batch into parts of limited size: as few parts as possible, sizes that differ by at most
// one, larger parts first. Seven samples in parts of at most three are 3, 2 and 2. Microbatching
// and ghost batch norm share the rule, so that their parts are the same. constexpr, so that CPU and
// GPU share it.
#pragma once

#include <cstdint>

namespace thimble {

struct NearlyEqualParts {
  int64_t total = 0;
  int64_t parts = 0;

  // Part i, 0 <= i < parts, is [Begin(i), Begin(i) + Size(i)). Begin(parts) is the total.
  constexpr int64_t Size(int64_t i) const { return total / parts + (i < total % parts ? 1 : 0); }
  constexpr int64_t Begin(int64_t i) const {
    const int64_t larger = total % parts;
    return i * (total / parts) + (i < larger ? i : larger);
  }
  // The part that contains `index`, 0 <= index < total.
  constexpr int64_t PartOf(int64_t index) const {
    const int64_t size = total / parts;
    const int64_t in_larger = total % parts * (size + 1);
    return index < in_larger ? index / (size + 1) : total % parts + (index - in_larger) / size;
  }
  // The fraction of the total in part i, in (0, 1]. Requires a total above zero.
  constexpr double Share(int64_t i) const {
    return static_cast<double>(Size(i)) / static_cast<double>(total);
  }
  // The size of the first part; no other is larger.
  constexpr int64_t LargestSize() const { return Size(0); }
};

// Splits `total` >= 0 into parts of at most `largest` >= 1. A total of 0 gives one empty part.
constexpr NearlyEqualParts CutNearlyEqually(int64_t total, int64_t largest) {
  // (total + largest - 1) / largest could overflow: `largest` may be any number that a user types.
  const int64_t parts = total / largest + (total % largest != 0 ? 1 : 0);
  return {total, parts == 0 ? 1 : parts};
}

// As many parts of the largest size as hold the total: the last one reaches beyond it, by less than
// a part. Requires a total above zero.
constexpr NearlyEqualParts EqualParts(const NearlyEqualParts& nearly) {
  const int64_t size = nearly.LargestSize();
  const int64_t parts = (nearly.total + size - 1) / size;
  return {parts * size, parts};
}

}  // namespace thimble
