#include "thimble/data/text/subwords/word_counts.h"

#include <fmt/format.h>

#include "thimble/data/text/word_reader.h"

namespace thimble {
namespace {

constexpr size_t kWordCountsBufferBytes = size_t{64} << 10;  // few reads, little memory

}  // namespace

Result<void> WordCounts::Count(std::string_view word) {
  const auto index = static_cast<size_t>(words_.FindOrAdd(word));
  if (index == counts_.size()) counts_.push_back(0);
  ++counts_[index];
  if (size() <= kMaxCountedWords && bytes() <= kMaxCountedBytes) return {};
  return BadInput(fmt::format(
      "there are more than {} different words of {} bytes together, expected at most "
      "{} of {} bytes; merges can be learned from a part of the text",
      size() - 1, bytes() - static_cast<int64_t>(word.size()), kMaxCountedWords, kMaxCountedBytes));
}

Result<void> WordCounts::CountFile(const TextFile& file) {
  std::vector<char> buffer(kWordCountsBufferBytes);
  WordReader words(file.reader, 0, buffer);
  while (true) {
    THIMBLE_ASSIGN_OR_RETURN(const WordOrEnd next, words.Next());
    if (next.kind == WordOrEnd::Kind::kFileEnd) return {};
    if (next.kind == WordOrEnd::Kind::kLineEnd) continue;
    const auto counted = Count(next.word);
    if (!counted.ok()) return WithContext(file.reader.path(), counted.error());
  }
}

}  // namespace thimble
