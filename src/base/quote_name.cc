#include "thimble/base/quote_name.h"

#include <fmt/format.h>

#include <utility>

#include "thimble/base/json.h"

namespace thimble {
namespace {

// Longer names are cut in messages.
constexpr size_t kQuotedBytes = 80;
// Bytes kept from the start of a message: enough for any message of Thimble, and for the reason in
// a message that quotes a whole file.
constexpr size_t kFirstBytes = 1200;
constexpr size_t kLastBytes = 300;

// Whether this byte continues a UTF-8 character.
bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Cuts out the middle of a line that is too long, at character boundaries.
std::string WithoutMiddle(std::string line) {
  if (line.size() <= kFirstBytes + kLastBytes) return line;
  size_t first = kFirstBytes;
  size_t last = line.size() - kLastBytes;
  while (first > 0 && Continues(line[first])) --first;
  while (last < line.size() && Continues(line[last])) ++last;
  return line.substr(0, first) + " ... " + line.substr(last);
}

}  // namespace

std::string QuoteName(std::string_view name) {
  const std::string text = AsciiJsonString(name.substr(0, kQuotedBytes));
  return name.size() > kQuotedBytes ? text + "..." : text;
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    line += control ? fmt::format("\\x{:02x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return WithoutMiddle(std::move(line));
}

}  // namespace thimble
