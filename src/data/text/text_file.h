// A text file that was checked as a whole when it was opened: it is UTF-8, and its lines are
// counted.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/crc64.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/result.h"

namespace thimble {

struct TextFile {
  FileReader reader;
  int64_t lines = 0;  // a last line without a line feed is one, too
};

// Positions in text files are stored as uint32_t.
inline constexpr int64_t kMaxTextFileBytes = UINT32_MAX;

// Reads the file once, in chunks, and appends it to `checksum`. BadInput, with the line, if it is
// empty, too large, not UTF-8 or missing.
Result<TextFile> OpenTextFile(const std::string& path, Crc64& checksum);

// BadInput if one of the files has more lines than the other.
Result<void> CheckSameLines(const TextFile& source, const TextFile& target);

}  // namespace thimble
