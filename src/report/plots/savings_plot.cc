#include "thimble/report/plots/savings_plot.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/units.h"

namespace thimble {
namespace {

constexpr double kSavingsRow = 34;
constexpr double kRemark = 14;  // for the line below a technique
constexpr double kSavingsBar = 12;

struct Row {
  std::string name;
  std::string remark;
  int64_t arena_bytes = 0;
  int64_t from_bytes = 0;  // arena without it; 0: nothing to compare with
  bool total = false;
  std::string title;
};

Row TotalRow(const std::string& name, int64_t arena_bytes, int64_t from_bytes) {
  return {name,       "",   arena_bytes,
          from_bytes, true, fmt::format("{}\n{} bytes", name, CountText(arena_bytes))};
}

Row TechniqueRow(const TechniqueSaving& technique, const std::string& name, int64_t from_bytes,
                 int64_t all_bytes) {
  Row row{name, "", technique.arena_bytes, from_bytes, false, ""};
  row.remark = fmt::format(
      "saves {}, leaving it out costs {} · {}", FormatBytes(from_bytes - technique.arena_bytes),
      FormatBytes(technique.without_arena_bytes - all_bytes), technique.exactness);
  row.title = fmt::format("{}: {}\n{} bytes\n{}", technique.name, technique.what,
                          CountText(technique.arena_bytes), row.remark);
  return row;
}

std::vector<Row> Rows(const Savings& savings, int64_t arena_bytes) {
  std::vector<Row> rows = {TotalRow("none of these", savings.bare_arena_bytes, 0)};
  for (const TechniqueSaving& technique : savings.always) {
    rows.push_back(TechniqueRow(technique, fmt::format("{} alone", technique.name),
                                savings.bare_arena_bytes, savings.asked_arena_bytes));
  }
  rows.push_back(
      TotalRow("plain plan: all these", savings.asked_arena_bytes, savings.bare_arena_bytes));
  for (const TechniqueSaving& technique : savings.offered) {
    rows.push_back(TechniqueRow(technique, fmt::format("with {}", technique.name),
                                savings.asked_arena_bytes, savings.together_arena_bytes));
  }
  rows.push_back(TotalRow("this run", arena_bytes, savings.bare_arena_bytes));
  return rows;
}

double HeightOf(const Row& row) { return row.remark.empty() ? kSavingsRow : kSavingsRow + kRemark; }

void DrawBar(Svg& svg, const Frame& frame, const Row& row, double y) {
  const auto arena = static_cast<double>(row.arena_bytes);
  const auto from = static_cast<double>(row.from_bytes);
  svg.Rect({0, y, frame.area.width, kSavingsBar}, "panel");
  svg.Rect({0, y, std::max(frame.X(arena), 0.75), kSavingsBar},
           from > 0 && from < arena ? "cost" : "total");
  if (from > arena)
    svg.Rect({frame.X(arena), y, frame.X(from) - frame.X(arena), kSavingsBar}, "saved");
}

void DrawRow(Svg& svg, const Frame& frame, const Row& row, double y) {
  const std::string_view css_class = row.total ? "strong" : "";
  const double height = HeightOf(row);
  svg.Text(0, y + 12, row.name, css_class);
  svg.Text(svg.width(), y + 12, FormatBytes(row.arena_bytes), css_class, Anchor::kEnd);
  if (!row.remark.empty()) svg.Text(0, y + 26, Clipped(row.remark, svg.width()), "muted");
  DrawBar(svg, frame, row, y + height - kSavingsRow + 17);
  svg.Mark({0, y, svg.width(), height - 2}, "hit", row.title);
}

}  // namespace

Svg SavingsPlot(const Savings& savings, int64_t arena_bytes, double width) {
  const std::vector<Row> rows = Rows(savings, arena_bytes);
  double height = 0;
  Frame frame;
  frame.area = {0, 0, width - 1, 0};
  for (const Row& row : rows) {
    height += HeightOf(row);
    frame.x_high = std::max(frame.x_high, static_cast<double>(row.arena_bytes));
  }
  Svg svg(width, height,
          fmt::format("What techniques save: {} with none of them, {} in this run",
                      FormatBytes(savings.bare_arena_bytes), FormatBytes(arena_bytes)));
  double y = 0;
  for (const Row& row : rows) {
    DrawRow(svg, frame, row, y);
    y += HeightOf(row);
  }
  return svg;
}

}  // namespace thimble
