// WordTable: distinct words, numbered in the order in which they are added, in few allocations: all
// bytes in one string, no node per word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thimble {

class WordTable {
 public:
  int32_t size() const { return static_cast<int32_t>(ends_.size()); }
  // Total length of the words.
  int64_t bytes() const { return static_cast<int64_t>(bytes_.size()); }
  // Requires 0 <= index < size().
  std::string_view word(int32_t index) const;

  // The number of the word, or -1. Allocates nothing.
  int32_t Find(std::string_view word) const;
  // The number of the word, which is added if missing. Requires fewer than 2^31 words and 2^32
  // bytes.
  int32_t FindOrAdd(std::string_view word);

 private:
  // The slot that has the word, or the free slot where it belongs. Requires slots.
  size_t SlotOf(std::string_view word) const;
  void Grow();

  std::string bytes_;           // the words, one after the other
  std::vector<uint32_t> ends_;  // where each word ends in bytes_
  std::vector<int32_t> slots_;  // open addressing: number of a word, or -1; a power of two
};

}  // namespace thimble
