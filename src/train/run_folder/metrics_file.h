// MetricsFile: metrics.jsonl while a run writes it. It grows line by line and is never replaced, so
// checkpoints remember how long it was and its checksum: a run that goes on first makes sure that
// these lines are still what they were.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/crc64.h"
#include "thimble/base/result.h"

namespace thimble {

class MetricsFile {
 public:
  // Opens the file with its first `size_bytes` bytes and drops the rest, which will be written
  // again. kBadInput, with the file as it was, where these bytes are not those of `checksum`. A
  // file that is missing starts empty.
  static Result<MetricsFile> Open(const std::string& path, int64_t size_bytes, uint64_t checksum);
  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&& other) noexcept;
  ~MetricsFile();

  Result<void> Append(std::string line);  // without the newline
  // All lines so far outlast a power failure.
  Result<void> Sync() const;

  int64_t size_bytes() const { return size_bytes_; }
  uint64_t checksum() const { return checksum_.value(); }

 private:
  MetricsFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  Error Failure() const;

  std::string path_;
  int descriptor_ = -1;
  int64_t size_bytes_ = 0;
  Crc64 checksum_;
};

}  // namespace thimble
