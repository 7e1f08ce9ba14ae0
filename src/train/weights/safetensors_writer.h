// Writes a safetensors file piece by piece, without holding tensors in memory. The metadata contain
// a checksum of all bytes of the file (see base/sealed_text.h), which SafetensorsReader checks.
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

// A file being written: Create, then Append all data, then Finish. Until Finish succeeds, an
// existing file of that name is unchanged; without Finish, nothing remains of the new one.
class SafetensorsWriter {
 public:
  // Writes the header, with `metadata` and space for the checksum. The data follow in the order of
  // `specs`; list larger types before smaller ones, since PyTorch requires each tensor at a
  // multiple of its element size.
  static Result<SafetensorsWriter> Create(const std::string& path,
                                          std::span<const TensorSpec> specs,
                                          const TensorMetadata& metadata);

  // Appends the next bytes, in the order of the specs. Pieces may have any size and may cross
  // tensor boundaries. Requires no more bytes in total than the specs have.
  Result<void> Append(std::span<const std::byte> bytes);

  // Puts the file in place. Requires that all bytes were appended, unless Append failed.
  Result<void> Finish();

 private:
  SafetensorsWriter(AtomicFile file, int64_t missing_bytes, int64_t seal_offset);
  Result<void> Write(std::span<const std::byte> bytes);

  AtomicFile file_;
  int64_t missing_bytes_ = 0;  // data bytes not appended yet
  int64_t seal_offset_ = 0;    // position of the checksum in the file
  Crc64 checksum_;             // of all bytes written so far
};

}  // namespace thimble
