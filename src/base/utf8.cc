#include "thimble/base/utf8.h"

#include <cstddef>
#include <cstdint>

namespace thimble {
namespace {

// Bytes of a character that begins with `lead`; 0 if none does.
size_t CharacterBytes(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

// Requires that the lead byte announces text.size() bytes, more than one.
bool IsCharacter(std::string_view text) {
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800,
                                    0x10000};  // smaller code points are overlong
  uint32_t code = static_cast<unsigned char>(text.front()) & (0x7FU >> text.size());
  for (const char c : text.substr(1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80) return false;
    code = code << 6U | (byte & 0x3FU);
  }
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  return code >= kSmallest[text.size()] && code <= 0x10FFFF && !surrogate;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterBytes(static_cast<unsigned char>(text.front()));
    if (size == 0 || size > text.size()) return false;
    if (size > 1 && !IsCharacter(text.substr(0, size))) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace thimble
