#include "thimble/report/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "thimble/base/check.h"

namespace thimble {

std::string TextTable::ToString() const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    THIMBLE_CHECK(row.size() == widths.size(), "a row of {} cells", row.size());
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  const size_t line_width =
      std::accumulate(widths.begin(), widths.end(), size_t{0}) + 2 * (widths.size() - 1);
  std::string text;
  for (size_t index = 0; index < rows_.size(); ++index) {
    std::string line = fmt::format("{:<{}}", rows_[index][0], widths[0]);
    for (size_t column = 1; column < widths.size(); ++column) {
      line += fmt::format("  {:>{}}", rows_[index][column], widths[column]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (index == 0) text += std::string(line_width, '-') + "\n";
  }
  return text;
}

}  // namespace thimble
