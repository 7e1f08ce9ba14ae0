#include "thimble/report/plots/stacked_bars.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"

namespace thimble {
namespace {

constexpr double kStackedRow = 17;
constexpr double kStackedBar = 12;
constexpr double kTotalWidth = 66;  // "374.80 MB"

size_t Whole(const BarRow& row) { return Total(row.bytes) + row.gap_bytes; }

// Wide enough for the longest name, but at most half of the picture.
double NameWidth(const std::vector<BarRow>& rows, double width) {
  double widest = 0;
  for (const BarRow& row : rows) widest = std::max(widest, TextWidth(row.name, kFontSize));
  return std::min(widest + 8, width / 2);
}

// Keeps the end of a name, which says more than its beginning: "…layer.0.conv1".
std::string ShortenedName(const std::string& name, double width) {
  if (TextWidth(name, kFontSize) <= width) return name;
  size_t from = 0;
  while (from < name.size() && TextWidth(name.substr(from), kFontSize) > width - kFontSize) {
    do {
      ++from;
    } while (from < name.size() && (static_cast<unsigned char>(name[from]) & 0xC0) == 0x80);
  }
  return fmt::format("…{}", name.substr(from));
}

std::string TitleOf(const BarRow& row) {
  std::string title = fmt::format("{}\ntotal {}", row.name, ExactBytes(Whole(row)));
  for (const Category category : kStackOrder) {
    const size_t bytes = row.bytes[static_cast<size_t>(category)];
    if (bytes > 0) title += fmt::format("\n{} {}", Name(category), ExactBytes(bytes));
  }
  if (row.gap_bytes > 0) title += fmt::format("\ngaps {}", ExactBytes(row.gap_bytes));
  return title;
}

std::vector<LegendEntry> Legend(const std::vector<BarRow>& rows) {
  std::vector<LegendEntry> entries;
  for (const Category category : kStackOrder) {
    const auto has = [&](const BarRow& row) {
      return row.bytes[static_cast<size_t>(category)] > 0;
    };
    if (std::any_of(rows.begin(), rows.end(), has)) {
      entries.push_back({FillClass(category), std::string(Name(category))});
    }
  }
  return entries;
}

void DrawRow(Svg& svg, const Frame& frame, const BarRow& row, double y) {
  svg.Text(frame.area.x - 8, y + 10, ShortenedName(row.name, frame.area.x - 8), "", Anchor::kEnd);
  double x = frame.area.x;
  const auto part = [&](size_t bytes, std::string_view css_class) {
    const double part_width = frame.X(static_cast<double>(bytes)) - frame.area.x;
    if (part_width >= 0.05) svg.Rect({x, y, part_width, kStackedBar}, css_class);
    x += part_width;
  };
  for (const Category category : kStackOrder) {
    part(row.bytes[static_cast<size_t>(category)], FillClass(category));
  }
  part(row.gap_bytes, kGapsClass);
  svg.Text(x + 5, y + 10, FormatBytes(static_cast<int64_t>(Whole(row))), "muted");
  svg.Mark({0, y - 2.5, svg.width(), kStackedRow}, "hit", TitleOf(row));
}

}  // namespace

Svg StackedBars(const std::vector<BarRow>& rows, double width, const std::string& label) {
  const double names = NameWidth(rows, width);
  const double legend = LegendHeight(width, Legend(rows));
  Svg svg(width, legend + 8 + kStackedRow * static_cast<double>(rows.size()) + 4, label);
  Frame frame;
  frame.area = {names, legend + 8, width - names - kTotalWidth, 0};
  for (const BarRow& row : rows) {
    frame.x_high = std::max(frame.x_high, static_cast<double>(Whole(row)));
  }
  DrawLegend(svg, {0, 0, width, 0}, Legend(rows));
  for (size_t index = 0; index < rows.size(); ++index) {
    DrawRow(svg, frame, rows[index], frame.area.y + kStackedRow * static_cast<double>(index));
  }
  return svg;
}

}  // namespace thimble
