// The header of a safetensors file: parses it from untrusted bytes, and writes it.
//
// The file is: 8 bytes, the header's length as a little-endian number; the header, a JSON object
//   {"__metadata__": {"key": "value"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets":
//   [0, 24]}}
// padded with spaces; then the data, to which the offsets are relative. The tensors fill the data
// without overlap or gaps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

// Size in bytes of the length before the header.
inline constexpr int64_t kSafetensorsPrefixBytes = 8;
// The format's own limit, also enforced by its other readers.
inline constexpr int64_t kSafetensorsMaxHeaderBytes = 100'000'000;

using TensorMetadata = std::map<std::string, std::string>;

// The metadata key of the checksum: a seal over all bytes of the file (base/sealed_text.h). Only
// files written by Thimble have one.
inline constexpr std::string_view kChecksumKey = "thimble.checksum";
// The position of the seal in these bytes of a header; npos if there is none.
size_t FindSafetensorsSeal(std::string_view header);

// A tensor to be written.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// A tensor found in a file.
struct TensorEntry {
  std::string name;
  std::optional<DType> dtype;  // nullopt: a type that Thimble does not read, such as I64
  std::string dtype_name;      // as in the file: "F32"
  Shape shape;
  int64_t begin = 0;  // bytes [begin, end) of the data
  int64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their data
  TensorMetadata metadata;
};

// Parses and checks the header `text` of a file with `data_bytes` bytes after it. Memory is bounded
// by the text's size; nesting is limited by the format. kBadInput gives the byte of the file, what
// was expected there and what was found, but not the name of the file.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text, int64_t data_bytes);

// The length and the header for tensors whose data follow in the order of `specs`, padded with
// spaces so that the data begin at a multiple of 8. The same input gives the same bytes. kBadInput
// if a name is used twice or reserved, a text is not UTF-8, or a size exceeds the format's limit.
Result<std::string> FormatSafetensorsHeader(std::span<const TensorSpec> specs,
                                            const TensorMetadata& metadata);

// The format's name of a type: "F32", "U8", "I32".
std::string_view SafetensorsName(DType dtype);

}  // namespace thimble
