// Parses the JSON of a safetensors header. For safetensors_header.cc only, which then checks that
// names differ and that the tensors fill the data.
#pragma once

#include <cstdint>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// The metadata and the tensors, in the order of the text. kBadInput if one of them is invalid: its
// rank is too high, its size overflows, or its range is not within `data_bytes` or does not match
// shape and type (if the type is known).
Result<SafetensorsHeader> ParseSafetensorsJson(std::string_view text, int64_t data_bytes);

}  // namespace thimble
