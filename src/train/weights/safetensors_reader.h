// Reading tensors from a safetensors file, which may be damaged or hostile.
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

// An open file whose header was read and checked; the data stay on disk until asked for. Errors
// name the file, the byte and what was expected there.
class SafetensorsReader {
 public:
  // A file that carries a checksum of itself is read once from end to end to compare.
  static Result<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // In the order of their data. Includes tensors of types that cannot be read.
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  // Without the checksum.
  const TensorMetadata& metadata() const { return header_.metadata; }
  // nullptr if there is none. The pointer lives as long as the reader.
  const TensorEntry* Find(std::string_view name) const;

  // The whole tensor, dense and row-major. Requires an entry of this file and `out` of its size;
  // kBadInput if its type is not among DType's.
  Result<void> Read(const TensorEntry& entry, std::span<std::byte> out) const;
  // Its bytes from `byte_offset` on, as many as `out` holds. Requires that they lie inside.
  Result<void> Read(const TensorEntry& entry, int64_t byte_offset, std::span<std::byte> out) const;

 private:
  SafetensorsReader(std::string path, FileReader file, int64_t data_start,
                    SafetensorsHeader header);

  std::string path_;
  FileReader file_;
  int64_t data_start_ = 0;  // where in the file the data begin
  SafetensorsHeader header_;
  std::vector<size_t> by_name_;  // indices into header_.tensors, sorted by name
};

}  // namespace thimble
