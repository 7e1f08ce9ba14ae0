#include "thimble/data/text/tokenize_13a.h"

#include <array>
#include <cstddef>
#include <utility>

namespace thimble {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsPeriodOrComma(char c) { return c == '.' || c == ','; }

// All ASCII symbols but apostrophe, comma, hyphen and period, which depend on their neighbours.
bool IsSymbol(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

void ReplaceAll(std::string_view from, std::string_view to, std::string& text) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The next functions go over the text from left to right, and what one replacement has used is not
// looked at again. The rules of mteval are written so, as regular expressions; their order matters.

std::string SeparateSymbols(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (IsSymbol(c)) {
      result += {' ', c, ' '};
    } else {
      result += c;
    }
  }
  return result;
}

// Wherever `matches` two neighbouring bytes, inserts `before`, `between` and `after`.
template <class Matches>
std::string SpacePairs(std::string_view text, Matches matches, std::string_view before,
                       std::string_view after) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
      result += text[i];
      continue;
    }
    result += before;
    result += {text[i], ' ', text[i + 1]};
    result += after;
    ++i;
  }
  return result;
}

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kEntities = {{
    {"<skipped>", ""},
    {"&quot;", "\""},
    {"&amp;", "&"},
    {"&lt;", "<"},
    {"&gt;", ">"},
}};

}  // namespace

std::string Tokenize13a(std::string_view line) {
  std::string text = " ";
  text += line;
  text += ' ';
  for (const auto& [from, to] : kEntities) ReplaceAll(from, to, text);
  text = SeparateSymbols(text);
  text = SpacePairs(
      text, [](char a, char b) { return !IsDigit(a) && IsPeriodOrComma(b); }, "", " ");
  text = SpacePairs(
      text, [](char a, char b) { return IsPeriodOrComma(a) && !IsDigit(b); }, " ", "");
  return SpacePairs(
      text, [](char a, char b) { return IsDigit(a) && b == '-'; }, "", " ");
}

}  // namespace thimble
