#include "thimble/base/toml_depth.h"

#include <algorithm>

namespace thimble {
namespace {

constexpr auto kNone = std::string_view::npos;

// The position after the string that begins at `begin`; an unterminated one ends with its line.
size_t BehindString(std::string_view text, size_t begin) {
  const char quote = text[begin];
  const std::string_view triple = text.substr(begin, 3);
  if (triple.size() == 3 && triple[1] == quote && triple[2] == quote) {
    const size_t end = text.find(triple, begin + 3);
    return end == kNone ? text.size() : end + 3;
  }
  for (size_t at = begin + 1; at < text.size() && text[at] != '\n'; ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      return at + 1;
    }
  }
  return std::min(text.find('\n', begin), text.size());
}

}  // namespace

int64_t LineOfDeepKey(std::string_view text) {
  constexpr std::string_view kBetweenKeys = "\n,=[]{}";
  int parts = 1;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (c == '"' || c == '\'') {
      at = BehindString(text, at);
      continue;
    }
    if (kBetweenKeys.find(c) != kNone) parts = 1;
    if (c == '.' && ++parts > kMaxKeyParts) {
      return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    }
    ++at;
  }
  return 0;
}

}  // namespace thimble
