// How deep the keys of a TOML text go, before anybody parses it.
#pragma once

#include <cstdint>
#include <string_view>

namespace thimble {

// toml++ calls itself as often as a dotted key ("a.b.c") has parts: a long one would overflow the
// stack. No file of ours needs more than this.
inline constexpr int kMaxKeyParts = 32;

// The line, from 1, of the first key with more parts; 0 where there is none. Looks at no more than
// quotes, comments and punctuation; what is wrong otherwise is the parser's to say.
int64_t LineOfDeepKey(std::string_view text);

}  // namespace thimble
