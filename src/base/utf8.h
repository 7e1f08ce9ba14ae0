// UTF-8 validation, for JSON and TOML.
#pragma once

#include <string_view>

namespace thimble {

// Whether the bytes are UTF-8: no stray, missing or overlong bytes, no surrogates, nothing beyond
// U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace thimble
