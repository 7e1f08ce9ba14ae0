#include "thimble/data/text/word_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "thimble/base/check.h"

namespace thimble {
WordReader::WordReader(const FileReader& file, int64_t offset, std::span<char> buffer)
    : file_(file), buffer_(buffer), rest_(buffer.data(), 0), next_offset_(offset) {
  THIMBLE_CHECK(buffer.size() >= kMinBufferBytes, "a buffer of {} bytes", buffer.size());
}

Result<void> WordReader::Provide(size_t bytes) {
  if (rest_.size() >= bytes) return {};
  const int64_t unread = file_.size_bytes() - next_offset_;
  if (unread <= 0) return {};
  std::memmove(buffer_.data(), rest_.data(), rest_.size());
  const auto room = static_cast<int64_t>(buffer_.size() - rest_.size());
  const auto part = static_cast<size_t>(std::min(unread, room));
  THIMBLE_TRY(
      file_.ReadAt(next_offset_, std::as_writable_bytes(buffer_.subspan(rest_.size(), part))));
  rest_ = std::string_view(buffer_.data(), rest_.size() + part);
  next_offset_ += static_cast<int64_t>(part);
  return {};
}

Result<WordOrEnd> WordReader::Next() {
  while (true) {
    THIMBLE_TRY(Provide(kMaxSpaceBytes));
    if (rest_.empty()) {
      const bool open_line = std::exchange(in_line_, false);
      return WordOrEnd{open_line ? WordOrEnd::Kind::kLineEnd : WordOrEnd::Kind::kFileEnd, {}};
    }
    if (rest_.front() == '\n') {
      in_line_ = false;
      rest_.remove_prefix(1);
      return WordOrEnd{WordOrEnd::Kind::kLineEnd, {}};
    }
    in_line_ = true;
    const size_t space = SpaceBytes(rest_);
    if (space == 0) return TakeNextWord();
    rest_.remove_prefix(space);
  }
}

Result<WordOrEnd> WordReader::TakeNextWord() {
  THIMBLE_TRY(Provide(kMaxWordBytes + kMaxSpaceBytes));
  const WordOrEnd word{WordOrEnd::Kind::kWord, rest_.substr(0, ShortWordBytes(rest_))};
  rest_.remove_prefix(word.word.size());
  return word;
}

}  // namespace thimble
