// Writing a safetensors file piece by piece; no tensor is ever held in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "thimble/base/atomic_file.h"
#include "thimble/base/result.h"
#include "thimble/train/safetensors_header.h"

namespace thimble {

// A file being written: Create, then all data through Append, then Finish. Until Finish succeeds, a
// previous file of that name stays as it was; without Finish, nothing remains of this one.
class SafetensorsWriter {
 public:
  // Writes the header. The data lie in the order of `specs`; list larger types before smaller ones,
  // since PyTorch wants each tensor at a multiple of its element's size.
  static Result<SafetensorsWriter> Create(const std::string& path,
                                          std::span<const TensorSpec> specs,
                                          const TensorMetadata& metadata);

  // The next bytes, in the order of the specs, in pieces of any size that need not respect the
  // borders of tensors. Requires no more bytes in total than the specs have.
  Result<void> Append(std::span<const std::byte> bytes);

  // Makes the file appear. Requires that all bytes were appended, unless Append failed.
  Result<void> Finish();

 private:
  SafetensorsWriter(AtomicFile file, int64_t missing_bytes);

  AtomicFile file_;
  int64_t missing_bytes_ = 0;  // of the data, not appended yet
};

}  // namespace thimble
