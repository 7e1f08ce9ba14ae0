// Reads tensors from a safetensors file, which may be damaged or malicious.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/file_reader.h"
#include "thimble/base/result.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// An open file whose header was read and checked; data are read on demand. Errors name the file,
// the byte and what was expected there.
class SafetensorsReader {
 public:
  // If the file contains its checksum, reads the whole file once to verify it.
  static Result<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of their data. Includes tensors of types that cannot be read.
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  // Without the checksum.
  const TensorMetadata& metadata() const { return header_.metadata; }
  // nullptr if there is none. The pointer is valid during the reader's lifetime.
  const TensorEntry* Find(std::string_view name) const;

  // Reads the whole tensor, dense and row-major. Requires an entry of this file and `out` of its
  // size. kBadInput if its type is not a DType.
  Result<void> Read(const TensorEntry& entry, std::span<std::byte> out) const;
  // Reads out.size() bytes of the tensor from `byte_offset` on. Requires that it has them.
  Result<void> Read(const TensorEntry& entry, int64_t byte_offset, std::span<std::byte> out) const;

 private:
  SafetensorsReader(std::string path, FileReader file, int64_t data_start,
                    SafetensorsHeader header);

  std::string path_;
  FileReader file_;
  int64_t data_start_ = 0;  // position of the data in the file
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  // indices into header_.tensors, sorted by name
};

}  // namespace thimble
