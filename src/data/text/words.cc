#include "thimble/data/text/words.h"

#include <array>

namespace thimble {
namespace {

// ASCII: tab to carriage return, the four separators, space.
constexpr bool IsAsciiSpace(unsigned char c) {
  return c == 0x20 || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
}

// Whether these are the last two bytes of U+2000 to U+200A, U+2028, U+2029, U+202F or U+205F, which
// all begin with E2.
bool EndsSpaceOfE2(unsigned char second, unsigned char third) {
  if (second == 0x81) return third == 0x9F;
  if (second != 0x80) return false;
  return (third >= 0x80 && third <= 0x8A) || third == 0xA8 || third == 0xA9 || third == 0xAF;
}

// Whether a character of whitespace may begin with this byte. Nearly all bytes of text cannot.
constexpr std::array<bool, 256> kMayBeginSpace = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 0x80; ++c) table[c] = IsAsciiSpace(static_cast<unsigned char>(c));
  for (const int c : {0xC2, 0xE1, 0xE2, 0xE3}) table[c] = true;
  return table;
}();

// Whether the byte is one of a character of several bytes, but not its first.
bool ContinuesCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

// The size of `text` without the bytes of a last character that may be incomplete.
size_t WholeCharacters(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && ContinuesCharacter(text[end - 1])) --end;
  // Without a lead byte it is not UTF-8; any cut does.
  return end <= 1 ? text.size() : end - 1;
}

void SkipSpace(std::string_view& rest) {
  while (const size_t bytes = SpaceBytes(rest)) rest.remove_prefix(bytes);
}

}  // namespace

size_t SpaceBytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return IsAsciiSpace(first) ? 1 : 0;
  if (first == 0xC2) return text.size() > 1 && (byte(1) == 0x85 || byte(1) == 0xA0) ? 2 : 0;
  if (first < 0xE1 || first > 0xE3 || text.size() < 3) return 0;
  if (first == 0xE2) return EndsSpaceOfE2(byte(1), byte(2)) ? 3 : 0;
  const bool ogham_or_ideographic =
      text.starts_with("\xE1\x9A\x80") || text.starts_with("\xE3\x80\x80");
  return ogham_or_ideographic ? 3 : 0;
}

size_t WordBytes(std::string_view text) {
  size_t end = 0;
  for (; end < text.size(); ++end) {
    const bool space = kMayBeginSpace[static_cast<unsigned char>(text[end])];
    if (space && SpaceBytes(text.substr(end)) != 0) break;
  }
  return end;
}

std::string_view TakeWord(std::string_view& rest) {
  SkipSpace(rest);
  const std::string_view word = rest.substr(0, WordBytes(rest));
  rest.remove_prefix(word.size());
  return word;
}

size_t ShortWordBytes(std::string_view text) {
  const size_t end = WordBytes(text.substr(0, kMaxWordBytes + kMaxSpaceBytes));
  return end > kMaxWordBytes ? WholeCharacters(text.substr(0, kMaxWordBytes)) : end;
}

std::string_view TakeShortWord(std::string_view& rest) {
  SkipSpace(rest);
  const std::string_view word = rest.substr(0, ShortWordBytes(rest));
  rest.remove_prefix(word.size());
  return word;
}

size_t FirstCharacterBytes(std::string_view text) {
  size_t end = 1;
  while (end < text.size() && ContinuesCharacter(text[end])) ++end;
  return end;
}

void LineJoiner::Append(std::string_view word) {
  if (!joined_) line_ += ' ';
  joined_ = word.ends_with(kSubwordMark);
  if (joined_) word.remove_suffix(kSubwordMark.size());
  line_ += word;
}

}  // namespace thimble
