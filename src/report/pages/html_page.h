// A self-contained HTML page and the elements of reports. Arguments are plain text, escaped here,
// unless their name ends in _html.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/report/plots/svg.h"

namespace thimble {

// A whole page: head, styles for light and dark, body, and the script that shows the titles of
// plots on hover, touch and arrow keys. Without the script the browser shows them itself.
std::string HtmlPage(std::string_view title, std::string_view body_html);

std::string Heading(std::string_view text);
// A paragraph; `css_class` may be empty.
std::string Paragraph(std::string_view text, std::string_view css_class = {});
// A number with its name above and a remark below.
struct Tile {
  std::string name;
  std::string value;
  std::string remark;
};
std::string Tiles(const std::vector<Tile>& tiles);

// A picture or a table with its caption, if it has one.
std::string Figure(std::string_view plots_html, std::string_view caption);
// The same picture for wide and for narrow windows; only one of them is visible.
std::string WideAndNarrow(const Svg& wide, const Svg& narrow);

// Rows of cells below a header. The first column is text, the others are numbers.
using TableRow = std::vector<std::string>;
std::string Table(const TableRow& header, const std::vector<TableRow>& rows);

// Preformatted text in a box.
std::string Preformatted(std::string_view text);

}  // namespace thimble
