// PreparedFile: a file that is to be written, and whether an earlier one differs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "thimble/base/atomic_file.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/result.h"

namespace thimble {

// How the file at the path compares with what was written.
enum class EarlierFile : uint8_t { kNone, kSame, kDiffers };

// Bytes go to a temporary file (base/atomic_file.h) and are compared with the file that is at the
// path already, which does not change before Commit.
class PreparedFile {
 public:
  static Result<PreparedFile> Create(const std::string& path);

  const std::string& path() const { return path_; }
  // Appends.
  Result<void> Write(std::string_view bytes);
  // Of all that was written so far, so kSame means: it begins and ends in the same way.
  EarlierFile earlier() const;
  // Must be the last call. Replaces an earlier file, the same or not.
  Result<void> Commit();

 private:
  PreparedFile(std::string path, AtomicFile file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  AtomicFile file_;
  std::optional<FileReader> earlier_;
  int64_t written_bytes_ = 0;
  bool differs_ = false;
};

}  // namespace thimble
