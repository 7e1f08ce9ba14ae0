#include "thimble/data/text/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/base/utf8.h"

namespace thimble {
namespace {

constexpr size_t kTextChunkBytes = size_t{64} << 10;  // few reads, little memory

// The size of `text` up to its last character of several bytes, if that one may continue behind the
// text.
size_t UpToOpenCharacter(std::string_view text) {
  constexpr size_t kMostOpenBytes = 3;  // of a character of four
  for (size_t back = 1; back <= std::min(kMostOpenBytes, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) break;
    if (byte >= 0xC0) return text.size() - back;
  }
  return text.size();
}

// Checks the text of one file, part by part.
class TextCheck {
 public:
  explicit TextCheck(const std::string& path) : path_(path) {}

  // `text` ends with a whole character.
  Result<void> Append(std::string_view text) {
    if (!IsUtf8(text)) return NotUtf8(text);
    lines_ += std::count(text.begin(), text.end(), '\n');
    if (!text.empty()) open_line_ = text.back() != '\n';
    return {};
  }
  int64_t lines() const { return lines_ + (open_line_ ? 1 : 0); }

 private:
  Error NotUtf8(std::string_view text) const {
    int64_t line = lines_ + 1;
    while (true) {
      const size_t end = std::min(text.find('\n'), text.size());
      if (!IsUtf8(text.substr(0, end))) break;
      text.remove_prefix(end + 1);
      ++line;
    }
    return BadInput(
        fmt::format("{}: line {} is not UTF-8 (to remove the bytes that are not: iconv -c -f "
                    "utf-8 -t utf-8)",
                    path_, line));
  }

  const std::string& path_;
  int64_t lines_ = 0;
  bool open_line_ = false;
};

Result<void> CheckTextSize(const FileReader& reader) {
  if (reader.size_bytes() == 0) {
    return BadInput(fmt::format("{}: file is empty, expected lines of text", reader.path()));
  }
  if (reader.size_bytes() <= kMaxTextFileBytes) return {};
  return BadInput(fmt::format("{}: has {} bytes, expected at most {}", reader.path(),
                              reader.size_bytes(), kMaxTextFileBytes));
}

}  // namespace

Result<TextFile> OpenTextFile(const std::string& path, Crc64& checksum) {
  THIMBLE_ASSIGN_OR_RETURN(FileReader reader, FileReader::Open(path));
  THIMBLE_TRY(CheckTextSize(reader));
  TextCheck check(path);
  std::vector<char> chunk(kTextChunkBytes);
  size_t kept = 0;  // bytes of an open character, at the beginning of the chunk
  for (int64_t offset = 0; offset < reader.size_bytes();) {
    const int64_t unread = reader.size_bytes() - offset;
    const auto part =
        static_cast<size_t>(std::min(unread, static_cast<int64_t>(chunk.size() - kept)));
    const auto bytes = std::as_writable_bytes(std::span(chunk).subspan(kept, part));
    THIMBLE_TRY(reader.ReadAt(offset, bytes));
    checksum.Append(bytes);
    offset += static_cast<int64_t>(part);
    const std::string_view text(chunk.data(), kept + part);
    const bool last = offset == reader.size_bytes();
    const size_t whole = last ? text.size() : UpToOpenCharacter(text);
    THIMBLE_TRY(check.Append(text.substr(0, whole)));
    kept = text.size() - whole;
    std::memmove(chunk.data(), chunk.data() + whole, kept);
  }
  return TextFile{std::move(reader), check.lines()};
}

Result<void> CheckSameLines(const TextFile& source, const TextFile& target) {
  if (source.lines == target.lines) return {};
  return BadInput(fmt::format("{}: has {} lines, but {} has {}; expected a translation in each",
                              source.reader.path(), source.lines, target.reader.path(),
                              target.lines));
}

}  // namespace thimble
