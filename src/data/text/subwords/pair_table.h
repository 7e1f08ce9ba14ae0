// PairTable: distinct pairs of numbers, numbered in the order in which they are added; as WordTable
// for words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace thimble {

struct NumberPair {
  int32_t first = 0;
  int32_t second = 0;
  friend bool operator==(const NumberPair&, const NumberPair&) = default;
};

class PairTable {
 public:
  int32_t size() const { return static_cast<int32_t>(pairs_.size()); }
  // Requires 0 <= index < size().
  const NumberPair& pair(int32_t index) const { return pairs_[static_cast<size_t>(index)]; }

  // The number of the pair, or -1. Allocates nothing.
  int32_t Find(const NumberPair& pair) const;
  // The number of the pair, which is added if missing. Requires fewer than 2^31 pairs.
  int32_t FindOrAdd(const NumberPair& pair);

 private:
  // The slot that has the pair, or the free slot where it belongs. Requires slots.
  size_t SlotOf(const NumberPair& pair) const;
  void Grow();

  std::vector<NumberPair> pairs_;
  std::vector<int32_t> slots_;  // open addressing: number of a pair, or -1; a power of two
};

}  // namespace thimble
