// TextStyle: the width of a terminal and whether it shows colours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

enum class Ink { kPlain, kBold, kFaint, kGood, kBad };

struct TextStyle {
  size_t width = 0;    // columns; 0: unlimited
  bool color = false;  // escape sequences for colours and bold

  // The text in this ink, or unchanged if `color` is false.
  std::string Paint(Ink ink, std::string_view text) const;
};

// The style of standard output. A terminal has its width (overridden by COLUMNS), and colours
// unless NO_COLOR is set or TERM is "dumb". Pipes and files get plain text of unlimited width.
TextStyle StyleOfOutput();

// Columns of the terminal with this descriptor: the value of COLUMNS, or what the terminal reports;
// 0 if neither is known.
size_t TerminalWidth(int descriptor);

// Columns that a UTF-8 text takes: its code points. Wide and combining characters are not handled.
size_t DisplayWidth(std::string_view text);
// The text in at most `width` columns, with "…" in place of its middle. Requires width >= 1.
std::string Shortened(std::string_view text, size_t width);

}  // namespace thimble
