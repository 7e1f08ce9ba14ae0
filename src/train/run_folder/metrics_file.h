// MetricsFile: metrics.jsonl while a run writes it. It grows line by line and is never replaced.
// Checkpoints record its size and checksum, so that a resumed run can check that these lines are
// unchanged.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/crc64.h"
#include "thimble/base/result.h"

namespace thimble {

class MetricsFile {
 public:
  // Opens the file and truncates it to `size_bytes`; the lines after that will be written again.
  // kBadInput, with the file unchanged, if it is shorter or the checksum of these bytes is not
  // `checksum`. A missing file starts empty.
  static Result<MetricsFile> Open(const std::string& path, int64_t size_bytes, uint64_t checksum);
  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&& other) noexcept;
  ~MetricsFile();

  Result<void> Append(std::string line);  // without the newline
  // Flushes all lines to disk, so that they survive a power failure.
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
