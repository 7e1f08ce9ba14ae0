#include "thimble/report/savings_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "thimble/base/byte_size.h"
#include "thimble/report/plot_frame.h"

namespace thimble {
namespace {

constexpr double kRow = 34;
constexpr double kRemark = 14;  // for the line below a technique
constexpr double kBar = 12;

// From `left` to `right` bytes.
struct Row {
  std::string name;
  std::string value;
  std::string remark;
  double left = 0;
  double right = 0;
  std::string css_class;
  std::string title;
};

std::string Change(int64_t saved_bytes) {
  if (saved_bytes == 0) return "0 B";
  // The smallest number of a file has no opposite.
  const int64_t saved = std::max(saved_bytes, -std::numeric_limits<int64_t>::max());
  return fmt::format("{}{}", saved > 0 ? "−" : "+", FormatBytes(saved > 0 ? saved : -saved));
}

Row TechniqueRow(const TechniqueRecord& technique, double before) {
  const auto saved = static_cast<double>(technique.saved_bytes);
  Row row;
  row.name = fmt::format("{} ({})", technique.name, technique.exactness);
  row.value = Change(technique.saved_bytes);
  row.remark = technique.done;
  row.left = std::min(before, before - saved);
  row.right = std::max(before, before - saved);
  row.css_class = saved < 0 ? "cost" : "saved";
  row.title =
      fmt::format("{}: {}\n{}\n{}", technique.name, technique.what, technique.done, row.value);
  if (technique.added_flops != 0) {
    row.title +=
        fmt::format("\n{:+.2f} GFLOP per step", static_cast<double>(technique.added_flops) / 1e9);
  }
  return row;
}

Row TotalRow(const std::string& name, double bytes) {
  const auto whole = static_cast<int64_t>(bytes);
  Row row;
  row.name = name;
  row.value = FormatBytes(whole);
  row.right = bytes;
  row.css_class = "total";
  row.title = fmt::format("{}\n{} bytes", name, Grouped(whole));
  return row;
}

// Sums are in double: savings from a file can be any numbers.
std::vector<Row> Rows(const PlanRecord& plan) {
  auto bytes = static_cast<double>(plan.arena_bytes);
  for (const TechniqueRecord& technique : plan.techniques) {
    bytes += static_cast<double>(technique.saved_bytes);
  }
  constexpr double kMostBytes = 0x1p62;
  bytes = std::clamp(bytes, 0.0, kMostBytes);
  std::vector<Row> rows = {TotalRow("without techniques", bytes)};
  for (const TechniqueRecord& technique : plan.techniques) {
    rows.push_back(TechniqueRow(technique, bytes));
    bytes -= static_cast<double>(technique.saved_bytes);
  }
  rows.push_back(TotalRow("arena", static_cast<double>(plan.arena_bytes)));
  return rows;
}

double HeightOf(const Row& row) { return row.remark.empty() ? kRow : kRow + kRemark; }

void DrawRow(Svg& svg, const Frame& frame, const Row& row, double y) {
  const std::string_view css_class = row.css_class == "total" ? "strong" : "";
  const double height = HeightOf(row);
  const double bar_y = y + height - kRow + 17;
  svg.Text(0, y + 12, row.name, css_class);
  svg.Text(svg.width(), y + 12, row.value, css_class, Anchor::kEnd);
  if (!row.remark.empty()) svg.Text(0, y + 26, Clipped(row.remark, svg.width()), "muted");
  svg.Rect({0, bar_y, frame.area.width, kBar}, "panel");
  if (row.right > row.left) {
    const double left = frame.X(row.left);
    svg.Rect({left, bar_y, std::max(frame.X(row.right) - left, 0.75), kBar}, row.css_class);
  }
  svg.Mark({0, y, svg.width(), height - 2}, "hit", row.title);
}

}  // namespace

Svg SavingsPlot(const PlanRecord& plan, double width) {
  const std::vector<Row> rows = Rows(plan);
  double height = 0;
  Frame frame;
  frame.area = {0, 0, width - 1, 0};
  for (const Row& row : rows) {
    height += HeightOf(row);
    frame.x_high = std::max(frame.x_high, row.right);
  }
  Svg svg(width, height,
          fmt::format("What techniques save in {}: from {} down to {}", plan.name,
                      rows.front().value, rows.back().value));
  double y = 0;
  for (const Row& row : rows) {
    DrawRow(svg, frame, row, y);
    y += HeightOf(row);
  }
  return svg;
}

}  // namespace thimble
