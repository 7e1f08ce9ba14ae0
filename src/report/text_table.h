// TextTable: rows of cells as aligned plain text.
#pragma once

#include <string>
#include <vector>

namespace thimble {

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  // As many cells as the header has.
  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // The first column is aligned left, the others right; a line under the header.
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace thimble
