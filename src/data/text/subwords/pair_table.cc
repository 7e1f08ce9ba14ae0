#include "thimble/data/text/subwords/pair_table.h"

#include "thimble/base/check.h"

namespace thimble {
namespace {

constexpr size_t kFirstPairSlots = 64;

uint64_t HashPair(const NumberPair& pair) {
  const uint64_t both =
      uint64_t{static_cast<uint32_t>(pair.first)} << 32U | static_cast<uint32_t>(pair.second);
  const uint64_t hash = both * 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio (Knuth)
  return hash ^ (hash >> 32U);                      // its high bits are the better ones
}

}  // namespace

size_t PairTable::SlotOf(const NumberPair& pair) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashPair(pair) & mask;
  while (slots_[slot] >= 0 && this->pair(slots_[slot]) != pair) slot = (slot + 1) & mask;
  return slot;
}

int32_t PairTable::Find(const NumberPair& pair) const {
  return slots_.empty() ? -1 : slots_[SlotOf(pair)];
}

int32_t PairTable::FindOrAdd(const NumberPair& pair) {
  // At most half of the slots are taken, so that searches stay short.
  if (2 * pairs_.size() >= slots_.size()) Grow();
  int32_t& slot = slots_[SlotOf(pair)];
  if (slot >= 0) return slot;
  THIMBLE_CHECK(pairs_.size() < INT32_MAX);
  slot = size();
  pairs_.push_back(pair);
  return slot;
}

void PairTable::Grow() {
  slots_.assign(slots_.empty() ? kFirstPairSlots : 2 * slots_.size(), -1);
  for (int32_t i = 0; i < size(); ++i) slots_[SlotOf(pair(i))] = i;
}

}  // namespace thimble
