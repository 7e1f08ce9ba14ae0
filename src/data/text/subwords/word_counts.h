// WordCounts: the distinct words of texts and how often they occur, in bounded memory.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/text/text_file.h"
#include "thimble/data/text/word_table.h"

namespace thimble {

// Of distinct words; several times those of the 4.5 million pairs of WMT'14. Learning merges takes
// up to about 25 times as many bytes.
inline constexpr int64_t kMaxCountedBytes = int64_t{32} << 20;
inline constexpr int32_t kMaxCountedWords = 1 << 22;

class WordCounts {
 public:
  // BadInput beyond the limits above.
  Result<void> Count(std::string_view word);
  // Counts all words of a file. Errors name it.
  Result<void> CountFile(const TextFile& file);

  // Number of distinct words.
  int32_t size() const { return words_.size(); }
  // Of the distinct words.
  int64_t bytes() const { return words_.bytes(); }
  // Require 0 <= index < size().
  std::string_view word(int32_t index) const { return words_.word(index); }
  int64_t count(int32_t index) const { return counts_[static_cast<size_t>(index)]; }

 private:
  WordTable words_;
  std::vector<int64_t> counts_;
};

}  // namespace thimble
