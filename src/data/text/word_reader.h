// WordReader: the words of a text file, one after the other, through a small buffer, however long
// lines and words are.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "thimble/base/file_reader.h"
#include "thimble/base/result.h"
#include "thimble/data/text/words.h"

namespace thimble {

// A word, or what comes instead of one. A line ends with a line feed or the end of the file; a
// carriage return before it is whitespace.
struct WordOrEnd {
  enum class Kind : uint8_t { kWord, kLineEnd, kFileEnd };
  Kind kind = Kind::kFileEnd;
  std::string_view word;  // valid until the next call
};

class WordReader {
 public:
  static constexpr size_t kMinBufferBytes = 2 * kMaxWordBytes;

  // Starts at `offset`. `file` and `buffer`, of at least kMinBufferBytes, must outlive this.
  WordReader(const FileReader& file, int64_t offset, std::span<char> buffer);

  // Allocates nothing on success.
  Result<WordOrEnd> Next();
  // Where the line begins that the next word belongs to, right after kLineEnd.
  int64_t offset() const { return next_offset_ - static_cast<int64_t>(rest_.size()); }

 private:
  // Makes at least `bytes` bytes available, or all that the file still has.
  Result<void> Provide(size_t bytes);
  Result<WordOrEnd> TakeNextWord();

  const FileReader& file_;
  std::span<char> buffer_;
  std::string_view rest_;  // read, but not yet returned; in buffer_
  int64_t next_offset_;    // of the first byte not yet read
  bool in_line_ = false;   // the last line has begun, but not ended
};

}  // namespace thimble
