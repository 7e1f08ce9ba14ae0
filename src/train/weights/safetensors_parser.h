// The JSON part of reading a safetensors header. For safetensors_header.cc only, which checks the
// rest: that names differ and that the tensors fill the data.
#pragma once

#include <cstdint>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/train/weights/safetensors_header.h"

namespace thimble {

// The members of the header in the order of the text. Each tensor by itself is right: rank, sizes
// that do not overflow, a range within `data_bytes` that matches type and shape (where the type is
// known).
Result<SafetensorsHeader> ParseSafetensorsJson(std::string_view text, int64_t data_bytes);

}  // namespace thimble
