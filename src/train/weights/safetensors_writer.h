// Writing a safetensors file piece by piece; no tensor is ever held in memory. The file carries a
// checksum of all its bytes in its metadata (see base/sealed_text.h), which SafetensorsReader
// checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "thimble/base/atomic_file.h"
#include "thimble/base/crc64.h"
#include "thimble/base/result.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// A file being written: Create, then all data through Append, then Finish. Until Finish succeeds, a
// previous file of that name stays as it was; without Finish, nothing remains of this one.
class SafetensorsWriter {
 public:
  // Writes the header, with `metadata` and the place of the checksum. The data lie in the order of
  // `specs`; list larger types before smaller ones, since PyTorch wants each tensor at a multiple
  // of its element's size.
  static Result<SafetensorsWriter> Create(const std::string& path,
                                          std::span<const TensorSpec> specs,
                                          const TensorMetadata& metadata);

  // The next bytes, in the order of the specs, in pieces of any size that need not respect the
  // borders of tensors. Requires no more bytes in total than the specs have.
  Result<void> Append(std::span<const std::byte> bytes);

  // Makes the file appear. Requires that all bytes were appended, unless Append failed.
  Result<void> Finish();

 private:
  SafetensorsWriter(AtomicFile file, int64_t missing_bytes, int64_t seal_offset);
  Result<void> Write(std::span<const std::byte> bytes);

  AtomicFile file_;
  int64_t missing_bytes_ = 0;  // of the data, not appended yet
  int64_t seal_offset_ = 0;    // where in the file the checksum will stand
  Crc64 checksum_;             // of what was written so far
};

}  // namespace thimble
