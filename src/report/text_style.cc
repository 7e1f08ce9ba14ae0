#include "thimble/report/text_style.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace thimble {
namespace {

// Tables cannot be aligned in fewer columns; such a terminal wraps the lines.
constexpr size_t kNarrowestTerminal = 24;

std::string_view Code(Ink ink) {
  switch (ink) {
    case Ink::kPlain:
      return "0";
    case Ink::kBold:
      return "1";
    case Ink::kFaint:
      return "2";
    case Ink::kGood:
      return "32";
    case Ink::kBad:
      return "1;31";
  }
  return "0";
}

std::string_view Environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the first `count` code points.
size_t BytesOf(std::string_view text, size_t count) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    if (!Continues(text[byte]) && count-- == 0) break;
  }
  return byte;
}

}  // namespace

std::string TextStyle::Paint(Ink ink, std::string_view text) const {
  if (!color || ink == Ink::kPlain || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", Code(ink), text);
}

size_t TerminalWidth(int descriptor) {
  const std::string_view columns = Environment("COLUMNS");
  size_t width = 0;
  const auto [end, code] = std::from_chars(columns.data(), columns.data() + columns.size(), width);
  const bool said = code == std::errc() && end == columns.data() + columns.size() && width > 0;
  if (!said) {
    winsize size{};
    width = ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  }
  return width;
}

TextStyle StyleOfOutput() {
  if (isatty(STDOUT_FILENO) == 0) return {};
  const bool color = Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
  const size_t width = TerminalWidth(STDOUT_FILENO);
  return {width == 0 ? 0 : std::max(width, kNarrowestTerminal), color};
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string Shortened(std::string_view text, size_t width) {
  const size_t length = DisplayWidth(text);
  if (length <= width) return std::string(text);
  const size_t tail = (width - 1 + 1) / 2;  // the end of a name says more than its beginning
  const size_t head = width - 1 - tail;
  return fmt::format("{}…{}", text.substr(0, BytesOf(text, head)),
                     text.substr(BytesOf(text, length - tail)));
}

}  // namespace thimble
