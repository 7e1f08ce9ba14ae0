#include "thimble/report/plots/frontier_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/base/byte_size.h"
#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"
#include "thimble/report/units.h"
#include "thimble/train/planning/budget_search.h"
#include "thimble/train/step_time/op_times.h"

namespace thimble {
namespace {

constexpr double kHeight = 260;
constexpr double kDot = 4;

size_t ColourOf(const FrontierPoint& point) {
  return static_cast<size_t>(ClassIn(point.exactness));
}

class FrontierDrawing {
 public:
  FrontierDrawing(const std::vector<FrontierPoint>& points, double width, int64_t run_bytes)
      : points_(points),
        run_bytes_(run_bytes),
        timed_(points.front().step_seconds > 0),
        svg_(width, kHeight, "Time of a step over bytes of memory") {
    frame_.area = {44, 40, width - 44 - 8, kHeight - 40 - 40};
    frame_.x_low = std::log10(static_cast<double>(points.back().arena_bytes) / 1.2);
    frame_.x_high = std::log10(static_cast<double>(points.front().arena_bytes) * 1.2);
    frame_.y_high = 0;
    double longest = 0;
    for (const FrontierPoint& point : points) longest = std::max(longest, point.step_seconds);
    if (timed_) {
      unit_ = longest > 2 ? "s per step" : "ms per step";
      per_unit_ = longest > 2 ? 1 : 1e3;
    }
    for (const FrontierPoint& point : points) {
      frame_.y_high = std::max(frame_.y_high, 1.1 * ValueOf(point));
    }
  }

  Svg Draw() {
    DrawAxes();
    if (run_bytes_ > 0) DrawRun();
    for (size_t i = 0; i < points_.size(); ++i) DrawPoint(i);
    return std::move(svg_);
  }

 private:
  // In the unit of the axis.
  double ValueOf(const FrontierPoint& point) const {
    const double value = timed_ ? point.step_seconds : static_cast<double>(point.step_flops);
    return value * per_unit_;
  }
  double XOf(int64_t bytes) const { return frame_.X(std::log10(static_cast<double>(bytes))); }

  void DrawAxes() {
    DrawYTicks(svg_, frame_, RoundTicks(frame_.y_low, frame_.y_high, 5));
    svg_.Text(0, 10, unit_ + "; numbers at dots: expected points of accuracy", "muted");
    for (const double bytes : LogTicks(std::pow(10, frame_.x_low), std::pow(10, frame_.x_high))) {
      const double x = frame_.X(std::log10(bytes));
      svg_.Line(x, frame_.bottom(), x, frame_.bottom() + 4, "axis");
      svg_.Text(x, frame_.bottom() + 16, FormatBytes(static_cast<int64_t>(bytes)), "muted",
                Anchor::kMiddle);
    }
    svg_.Text(frame_.right(), frame_.bottom() + 32, "arena", "muted", Anchor::kEnd);
    double x = frame_.area.x;
    for (const Exactness exactness : {Exactness::kSameBits, Exactness::kEqual, Exactness::kLossy}) {
      const std::string name(Name(exactness));
      svg_.Circle(x + kDot, 22, kDot, InkClass(static_cast<size_t>(exactness)));
      svg_.Text(x + 12, 26, name, "muted");
      x += 30 + TextWidth(name, kFontSize);
    }
  }

  void DrawRun() {
    const double x = XOf(run_bytes_);
    svg_.Line(x, frame_.area.y, x, frame_.bottom(), "guide");
    svg_.Text(x + 4, frame_.area.y + 10, "this run", "muted");
  }

  void DrawPoint(size_t index) {
    const FrontierPoint& point = points_[index];
    const double x = XOf(point.arena_bytes);
    const double y = frame_.Y(ValueOf(point));
    if (index > 0) {
      const FrontierPoint& larger = points_[index - 1];
      svg_.Line(XOf(larger.arena_bytes), frame_.Y(ValueOf(larger)), x, y,
                LineClass(ColourOf(point)));
    }
    svg_.Circle(x, y, kDot, InkClass(ColourOf(point)));
    if (point.lost_points > 0 &&
        (index == 0 || point.lost_points > points_[index - 1].lost_points)) {
      svg_.Text(x, y - 2 * kDot, fmt::format("-{:.2g}", point.lost_points), "muted",
                Anchor::kMiddle);
    }
    svg_.Mark({x - 2 * kDot, y - 2 * kDot, 4 * kDot, 4 * kDot}, "hit", TitleOf(point));
  }

  std::string TitleOf(const FrontierPoint& point) const {
    std::string title = fmt::format("{} bytes\n", CountText(point.arena_bytes));
    title += timed_ ? FormatSeconds(point.step_seconds) : FlopsText(point.step_flops);
    title += " per step\n" + point.exactness;
    if (point.lost_points > 0) title += fmt::format(", -{:.2f} points", point.lost_points);
    return title + "\n" + (point.options.empty() ? "plain" : point.options);
  }

  const std::vector<FrontierPoint>& points_;
  int64_t run_bytes_;
  bool timed_;
  std::string unit_ = "GFLOP per step";
  double per_unit_ = 1e-9;
  Svg svg_;
  Frame frame_;
};

}  // namespace

Svg FrontierPlot(const std::vector<FrontierPoint>& points, double width, int64_t run_bytes) {
  return FrontierDrawing(points, width, run_bytes).Draw();
}

}  // namespace thimble
