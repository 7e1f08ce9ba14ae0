#include "thimble/report/text_table.h"

#include <algorithm>

#include "thimble/base/check.h"

namespace thimble {
namespace {

constexpr size_t kBetween = 2;  // blanks between columns
// Narrowest first column: enough to tell layers apart, and for the names of all categories.
constexpr size_t kNarrowestName = 14;

using TableRows = std::vector<std::vector<std::string>>;

std::vector<size_t> NaturalWidths(const TableRows& rows) {
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    THIMBLE_CHECK(row.size() == widths.size(), "a row of {} cells", row.size());
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], DisplayWidth(row[column]));
    }
  }
  return widths;
}

size_t LineWidth(const std::vector<size_t>& widths) {
  size_t line = kBetween * (widths.size() - 1);
  for (const size_t width : widths) line += width;
  return line;
}

// The widths of the columns that fit into `limit`.
std::vector<size_t> FittingWidths(std::vector<size_t> widths, size_t limit) {
  if (limit == 0) return widths;
  const auto shorten_name = [&] {
    const size_t line = LineWidth(widths);
    if (line <= limit || widths[0] <= kNarrowestName) return;
    widths[0] -= std::min(widths[0] - kNarrowestName, line - limit);
  };
  const size_t name_width = widths[0];
  shorten_name();
  while (LineWidth(widths) > limit && widths.size() > 2) {
    widths.pop_back();
    widths[0] = name_width;
    shorten_name();
  }
  return widths;
}

std::string Aligned(const std::string& cell, size_t width, bool left) {
  const std::string text = Shortened(cell, std::max<size_t>(width, 1));
  const size_t taken = DisplayWidth(text);
  const std::string blanks(width > taken ? width - taken : 0, ' ');
  return left ? text + blanks : blanks + text;
}

}  // namespace

std::string TextTable::ToString(const TextStyle& style) const {
  const std::vector<size_t> widths = FittingWidths(NaturalWidths(rows_), style.width);
  std::string text;
  for (size_t row = 0; row < rows_.size(); ++row) {
    std::string line;
    for (size_t column = 0; column < widths.size(); ++column) {
      if (column > 0) line.append(kBetween, ' ');
      line += Aligned(rows_[row][column], widths[column], left_[column]);
    }
    line.resize(line.find_last_not_of(' ') + 1);
    text += style.Paint(inks_[row], line) + "\n";
    if (row == 0) text += style.Paint(Ink::kFaint, std::string(LineWidth(widths), '-')) + "\n";
  }
  return text;
}

}  // namespace thimble
