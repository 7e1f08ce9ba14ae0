#include "thimble/data/text/word_table.h"

#include "thimble/base/check.h"

namespace thimble {
namespace {

constexpr size_t kFirstSlots = 64;

uint64_t HashWord(std::string_view word) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash ^ (hash >> 32);  // its high bits are the better ones
}

}  // namespace

std::string_view WordTable::word(int32_t index) const {
  THIMBLE_DCHECK(index >= 0 && index < size(), "word {} of {}", index, size());
  const auto i = static_cast<size_t>(index);
  const size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(bytes_).substr(begin, ends_[i] - begin);
}

size_t WordTable::SlotOf(std::string_view word) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = HashWord(word) & mask;
  while (slots_[slot] >= 0 && this->word(slots_[slot]) != word) slot = (slot + 1) & mask;
  return slot;
}

int32_t WordTable::Find(std::string_view word) const {
  return slots_.empty() ? -1 : slots_[SlotOf(word)];
}

int32_t WordTable::FindOrAdd(std::string_view word) {
  // At most half of the slots are taken, so that searches stay short.
  if (2 * ends_.size() >= slots_.size()) Grow();
  int32_t& slot = slots_[SlotOf(word)];
  if (slot >= 0) return slot;
  THIMBLE_CHECK(bytes_.size() + word.size() <= UINT32_MAX && ends_.size() < INT32_MAX);
  slot = size();
  bytes_ += word;
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  return slot;
}

void WordTable::Grow() {
  slots_.assign(slots_.empty() ? kFirstSlots : 2 * slots_.size(), -1);
  for (int32_t i = 0; i < size(); ++i) slots_[SlotOf(word(i))] = i;
}

}  // namespace thimble
