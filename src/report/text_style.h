// TextStyle: what a terminal can show: how wide its lines are, and whether in colour.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace thimble {

enum class Ink { kPlain, kBold, kFaint, kGood, kBad };

struct TextStyle {
  size_t width = 0;    // columns; 0: any number
  bool color = false;  // escape sequences for colours and bold

  // The text in this ink, or as it is where there is no colour.
  std::string Paint(Ink ink, std::string_view text) const;
};

// Of standard output: a terminal's width (COLUMNS wins) and colour, unless NO_COLOR is set to
// anything or TERM is "dumb". Pipes and files get plain text of any width.
TextStyle StyleOfOutput();

// Columns of the terminal behind this descriptor: what COLUMNS says, or what the terminal does; 0
// where neither says anything.
size_t TerminalWidth(int descriptor);

// Columns that a UTF-8 text takes: its code points; wide and combining ones do not occur here.
size_t DisplayWidth(std::string_view text);
// The text in at most `width` columns, with "…" in place of its middle. Requires width >= 1.
std::string Shortened(std::string_view text, size_t width);

}  // namespace thimble
