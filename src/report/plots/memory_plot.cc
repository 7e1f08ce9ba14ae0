#include "thimble/report/plots/memory_plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/base/byte_size.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"

namespace thimble {
namespace {

// More columns than this are narrower than a pixel.
constexpr size_t kMaxColumns = 1000;

// Steps [first, end) drawn as one, with the values of step `shown`.
struct Column {
  size_t first = 0;
  size_t end = 0;
  size_t shown = 0;
};

std::vector<Column> Columns(const MemoryAccount& account) {
  const size_t num_steps = account.at_step.size();
  const size_t num_columns = std::min(num_steps, kMaxColumns);
  std::vector<Column> columns;
  for (size_t index = 0; index < num_columns; ++index) {
    Column column{index * num_steps / num_columns, (index + 1) * num_steps / num_columns, 0};
    column.shown = column.first;
    for (size_t step = column.first; step < column.end; ++step) {
      if (Total(account.at_step[step]) > Total(account.at_step[column.shown])) column.shown = step;
    }
    columns.push_back(column);
  }
  return columns;
}

class MemoryDrawing {
 public:
  MemoryDrawing(const PlanRecord& plan, double width)
      : plan_(plan),
        account_(Account(plan)),
        columns_(Columns(account_)),
        legend_height_(LegendHeight(width, Legend())),
        svg_(width, legend_height_ + kTop + PlotHeight(width) + kBelow, Label()) {
    frame_.area = {44, legend_height_ + kTop, width - 44 - 8, PlotHeight(width)};
    frame_.x_high = static_cast<double>(account_.at_step.size());
    frame_.y_high = 1.04 * static_cast<double>(std::max<size_t>(plan.arena_bytes, 1));
  }

  Svg Draw() {
    DrawLegend(svg_, {0, 0, svg_.width(), 0}, Legend());
    DrawAxes();
    DrawStack();
    DrawPeak();
    DrawHits();
    return std::move(svg_);
  }

 private:
  static constexpr double kTop = 26;  // for the labels of the peak and the arena
  static constexpr double kBelow = kPhaseBandHeight + 34;
  static double PlotHeight(double width) { return width > 500 ? 300 : 230; }

  std::string Label() const {
    return fmt::format("Memory over one step of {} by category; the peak is {} at step {}",
                       plan_.name, ExactBytes(Total(account_.at_peak)), account_.peak_step);
  }
  std::vector<LegendEntry> Legend() const;
  void DrawAxes();
  void DrawStack();
  void DrawPeak();
  void DrawHits();

  const PlanRecord& plan_;
  MemoryAccount account_;
  std::vector<Column> columns_;
  double legend_height_;
  Svg svg_;
  Frame frame_;
};

// In the order of the stack, from the top down.
std::vector<LegendEntry> MemoryDrawing::Legend() const {
  std::vector<LegendEntry> entries;
  for (auto category = kStackOrder.rbegin(); category != kStackOrder.rend(); ++category) {
    const size_t bytes = account_.at_peak[static_cast<size_t>(*category)];
    entries.push_back(
        {FillClass(*category),
         fmt::format("{} {}", Name(*category), FormatBytes(static_cast<int64_t>(bytes)))});
  }
  return entries;
}

void MemoryDrawing::DrawAxes() {
  const ByteUnit unit = UnitFor(plan_.arena_bytes);
  std::vector<double> ticks = RoundTicks(0, frame_.y_high / unit.bytes, 5);
  for (double& tick : ticks) tick *= unit.bytes;
  DrawYTicks(svg_, frame_, ticks, unit.bytes);
  svg_.Text(frame_.area.x - 6, frame_.area.y - 10, unit.name, "muted", Anchor::kEnd);
  DrawPhases(svg_, frame_, plan_.steps);
  DrawXTicks(svg_, frame_, StepTicks(frame_.x_high, svg_.width() > 500 ? 8 : 5), kPhaseBandHeight);
  svg_.Text(frame_.right(), svg_.height() - 3, "steps of the plan", "muted", Anchor::kEnd);
}

// Each outline follows the tops from left to right and the bottoms back.
void MemoryDrawing::DrawStack() {
  std::vector<size_t> base(columns_.size(), 0);
  for (const Category category : kStackOrder) {
    std::string along = fmt::format("M{} {}", Coordinate(frame_.X(0)),
                                    Coordinate(frame_.Y(static_cast<double>(base.front()))));
    std::vector<std::string> bottoms;
    bool any = false;
    for (size_t index = 0; index < columns_.size(); ++index) {
      const Column& column = columns_[index];
      const size_t bytes = account_.at_step[column.shown][static_cast<size_t>(category)];
      const std::string left = Coordinate(frame_.X(static_cast<double>(column.first)));
      const std::string right = Coordinate(frame_.X(static_cast<double>(column.end)));
      const std::string bottom = Coordinate(frame_.Y(static_cast<double>(base[index])));
      base[index] += bytes;
      any |= bytes > 0;
      along += fmt::format("V{}H{}", Coordinate(frame_.Y(static_cast<double>(base[index]))), right);
      bottoms.push_back(fmt::format("V{}H{}", bottom, left));
    }
    if (!any) continue;
    svg_.Path(fmt::format("{}{}Z", along, fmt::join(bottoms.rbegin(), bottoms.rend(), "")),
              FillClass(category));
  }
  svg_.Line(frame_.area.x, frame_.bottom(), frame_.right(), frame_.bottom(), "axis");
}

void MemoryDrawing::DrawPeak() {
  const double x = frame_.X(static_cast<double>(account_.peak_step) + 0.5);
  const double arena_y = frame_.Y(static_cast<double>(plan_.arena_bytes));
  svg_.Line(frame_.area.x, arena_y, frame_.right(), arena_y, "guide");
  svg_.Line(x, frame_.area.y - 6, x, frame_.bottom(), "guide");
  svg_.Circle(x, frame_.Y(static_cast<double>(Total(account_.at_peak))), 3, "total");
  const std::string peak =
      fmt::format("peak {}, step {}", FormatBytes(static_cast<int64_t>(Total(account_.at_peak))),
                  account_.peak_step);
  const std::string arena =
      fmt::format("arena {}", FormatBytes(static_cast<int64_t>(plan_.arena_bytes)));
  // The peak's label is on the side with more space, the arena's at the other end.
  const bool room_right = x < frame_.area.x + frame_.area.width / 2;
  const double label_y = frame_.area.y - 10;
  svg_.Text(x + (room_right ? 4 : -4), label_y, peak, "strong",
            room_right ? Anchor::kStart : Anchor::kEnd);
  const double room = room_right ? frame_.right() - x : x - frame_.area.x;
  const bool beside = TextWidth(peak, kFontSize) + TextWidth(arena, kFontSize) + 24 < room;
  const double arena_label_y = beside ? label_y : arena_y + 14;  // or below its line
  svg_.Text(room_right ? frame_.right() - 2 : frame_.area.x + 4, arena_label_y, arena, "muted halo",
            room_right ? Anchor::kEnd : Anchor::kStart);
}

void MemoryDrawing::DrawHits() {
  for (const Column& column : columns_) {
    const CategoryBytes& bytes = account_.at_step[column.shown];
    std::string title = fmt::format("step {}: {}\n", column.shown, StepText(plan_, column.shown));
    title += fmt::format("total {}", ExactBytes(Total(bytes)));
    for (auto category = kStackOrder.rbegin(); category != kStackOrder.rend(); ++category) {
      title += fmt::format("\n{} {}", Name(*category),
                           ExactBytes(bytes[static_cast<size_t>(*category)]));
    }
    const double left = frame_.X(static_cast<double>(column.first));
    svg_.Mark(
        {left, frame_.area.y, frame_.X(static_cast<double>(column.end)) - left, frame_.area.height},
        column.shown == account_.peak_step ? "hit peak" : "hit", title);
  }
}

}  // namespace

Svg MemoryPlot(const PlanRecord& plan, double width) { return MemoryDrawing(plan, width).Draw(); }

}  // namespace thimble
