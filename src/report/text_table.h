// TextTable: rows of cells as aligned text, as wide as the terminal allows.
#pragma once

#include <string>
#include <vector>

#include "thimble/report/text_style.h"

namespace thimble {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header)
      : rows_{std::move(header)}, left_(rows_.front().size()), inks_{Ink::kBold} {
    left_[0] = true;
  }
  // As many cells as the header has.
  void AddRow(std::vector<std::string> cells, Ink ink = Ink::kPlain) {
    rows_.push_back(std::move(cells));
    inks_.push_back(ink);
  }
  // The first column is aligned left, the others right unless named here.
  void AlignLeft(size_t column) { left_[column] = true; }

  // The table with a line under the header. If it is wider than the style allows, names in the
  // first column are shortened, then columns are left out from the right, then the others are
  // shortened.
  std::string ToString(const TextStyle& style = {}) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the header first
  std::vector<bool> left_;                      // by column
  std::vector<Ink> inks_;                       // by row
};

}  // namespace thimble
