// Checks how many parts the keys of a TOML text have, before it is parsed.
#pragma once

#include <cstdint>
#include <string_view>

namespace thimble {

// toml++ recurses once per part of a dotted key ("a.b.c"): a long key would overflow the stack. No
// file of Thimble needs more parts than this.
inline constexpr int kMaxKeyParts = 32;

// The line, from 1, of the first key with more parts; 0 if there is none. Looks only at quotes,
// comments and punctuation; other errors are left to the parser.
int64_t LineOfDeepKey(std::string_view text);

}  // namespace thimble
