// FileReader: the bounded reader that every input file goes through. It reads the requested ranges
// and nothing else: no mapping, no read-ahead buffer, no trust in sizes that the file states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "thimble/base/result.h"

namespace thimble {

// Owns one open regular file. Can be moved, not copied.
class FileReader {
 public:
  // BadInput with the path and the system's reason if the file is missing, unreadable or not a
  // regular file (a folder, a pipe, a device).
  static Result<FileReader> Open(std::string path);

  FileReader(FileReader&& other) noexcept;
  FileReader& operator=(FileReader&& other) noexcept;
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;
  ~FileReader();

  const std::string& path() const { return path_; }
  // The size when the file was opened.
  int64_t size_bytes() const { return size_bytes_; }

  // Fills all of `bytes` from `offset`, or fails with an error that names file, offset, bytes
  // expected and got (`bytes` is then unspecified). Thread-safe; allocates nothing on success.
  Result<void> ReadAt(int64_t offset, std::span<std::byte> bytes) const;

  // BadInput if the file's size or time of modification is not what it was when the file was
  // opened. Thread-safe; allocates nothing on success.
  Result<void> CheckUnchanged() const;

 private:
  FileReader(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  Error ShortFile(int64_t offset, size_t expected, int64_t got) const;
  void Close();

  std::string path_;
  int descriptor_ = -1;
  int64_t size_bytes_ = 0;
  int64_t modified_ns_ = 0;  // since 1970
};

// The whole content of a small file; BadInput if it is longer than `max_bytes`.
Result<std::string> ReadWholeFile(const std::string& path, int64_t max_bytes);

}  // namespace thimble
