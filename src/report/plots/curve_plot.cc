#include "thimble/report/plots/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "thimble/report/plots/plot_frame.h"
#include "thimble/report/plots/plot_style.h"
#include "thimble/report/units.h"

namespace thimble {
namespace {

constexpr size_t kMostPoints = 400;  // two for each pixel of the plot
constexpr size_t kMostMarked = 14;   // curves with more points get no dots
constexpr size_t kDense = 250;       // thick lines would run into each other
constexpr size_t kMostTitles = 200;  // columns with a title
constexpr double kLogFrom = 30;      // a linear axis hides values this much smaller
constexpr double kLeastLog = 1e-100, kMostLog = 1e100;  // so that ratios are finite
constexpr double kLabelRow = 13;

std::string ValueText(double value, const std::string& unit) {
  if (unit == "%") return fmt::format("{:.2f} %", value);
  return fmt::format("{:.4g}", value);
}

struct Range {
  double low = 0, high = 0;
  bool empty = true;
  void Add(double value) {
    low = empty ? value : std::min(low, value);
    high = empty ? value : std::max(high, value);
    empty = false;
  }
};

class CurveDrawing {
 public:
  CurveDrawing(const CurveChart& chart, double width)
      : chart_(chart), svg_(width, 230, Label(chart)) {
    for (const Curve& curve : chart.curves) {
      curves_.push_back(curve);
      curves_.back().points = ThinnedOut(curve.points, kMostPoints);
    }
    frame_.area = {40, 24, width - 40 - LabelWidth(), svg_.height() - 24 - 36};
    ChooseRanges();
  }

  Svg Draw() {
    DrawAxes();
    for (const Curve& curve : curves_) DrawCurve(curve);
    DrawLabels();
    DrawHits();
    return std::move(svg_);
  }

 private:
  static std::string Label(const CurveChart& chart) {
    std::string label = chart.title;
    for (const Curve& curve : chart.curves) {
      if (curve.points.empty()) continue;
      label += fmt::format(", {} ends at {}", curve.name,
                           ValueText(curve.points.back().value, chart.unit));
    }
    return label;
  }
  // At most a third of the picture; longer names are cut off.
  double LabelWidth() const {
    double widest = 0;
    for (const Curve& curve : chart_.curves) {
      if (curve.points.empty() || curve.thin) continue;
      widest = std::max(widest, TextWidth(LabelOf(curve), kFontSize));
    }
    return std::clamp(widest + 10, 12.0, svg_.width() / 3);
  }
  std::string LabelOf(const Curve& curve) const {
    const std::string value = ValueText(curve.points.back().value, chart_.unit);
    return curve.name.empty() ? value : fmt::format("{} {}", curve.name, value);
  }
  void ChooseRanges();
  void DrawAxes();
  void DrawCurve(const Curve& curve);
  void DrawLabels();
  void DrawHits();

  const CurveChart& chart_;
  Svg svg_;
  std::vector<Curve> curves_;
  Frame frame_;
};

void CurveDrawing::ChooseRanges() {
  Range steps;
  Range values;
  for (const Curve& curve : curves_) {
    for (const CurvePoint& point : curve.points) {
      steps.Add(point.step);
      values.Add(point.value);
    }
  }
  frame_.x_low = 0;
  frame_.x_high = std::max(steps.high, 1.0);
  const bool linear = chart_.from_zero || chart_.unit == "%";
  frame_.y_log = !linear && values.low > kLeastLog && values.high < kMostLog &&
                 values.high / values.low > kLogFrom;
  if (frame_.y_log) {
    frame_.y_low = values.low / 1.2;
    frame_.y_high = values.high * 1.2;
    return;
  }
  if (chart_.from_zero) values.Add(0);
  // Flat curves are centred.
  const double span = values.high > values.low ? values.high - values.low
                                               : std::max(std::abs(values.high), 1.0) * 0.2;
  frame_.y_low = chart_.from_zero && values.low == 0 ? 0 : values.low - 0.06 * span;
  frame_.y_high = values.high + 0.06 * span;
  if (chart_.unit != "%") return;
  if (values.low >= 0) frame_.y_low = std::max(frame_.y_low, 0.0);
  if (values.high <= 100) frame_.y_high = std::min(frame_.y_high, 100.0);
}

void CurveDrawing::DrawAxes() {
  const auto ticks = frame_.y_log ? LogTicks(frame_.y_low, frame_.y_high)
                                  : RoundTicks(frame_.y_low, frame_.y_high, 5);
  DrawYTicks(svg_, frame_, ticks);
  std::string title = chart_.title;
  if (!chart_.unit.empty()) title += ", " + chart_.unit;
  if (frame_.y_log) title += ", logarithmic";
  for (const Curve& curve : curves_) {
    if (!curve.thin || curve.points.empty() || curve.name.empty()) continue;
    title += fmt::format(" (thin: {})", curve.name);
  }
  svg_.Text(0, 11, title, "strong");
  svg_.Line(frame_.area.x, frame_.bottom(), frame_.right(), frame_.bottom(), "axis");
  DrawXTicks(svg_, frame_, StepTicks(frame_.x_high, 4), 0);
  svg_.Text(frame_.right(), svg_.height() - 3, "training step", "muted", Anchor::kEnd);
}

void CurveDrawing::DrawCurve(const Curve& curve) {
  std::string commands;
  for (const CurvePoint& point : curve.points) {
    commands += fmt::format("{}{} {}", commands.empty() ? 'M' : 'L',
                            Coordinate(frame_.X(point.step)), Coordinate(frame_.Y(point.value)));
  }
  if (curve.points.size() > 1) {
    const bool dense = curve.points.size() > kDense;
    svg_.Path(commands, fmt::format("{}{}{}", LineClass(curve.colour), curve.thin ? " thin" : "",
                                    dense ? " dense" : ""));
  }
  if (curve.points.size() > kMostMarked || (curve.thin && curve.points.size() > 1)) return;
  for (const CurvePoint& point : curve.points) {
    svg_.Circle(frame_.X(point.step), frame_.Y(point.value), 2.5, InkClass(curve.colour));
  }
}

// Labels are at the height of the last point, moved apart if they would touch.
void CurveDrawing::DrawLabels() {
  struct Label {
    double y;
    const Curve* curve;
  };
  std::vector<Label> labels;
  for (const Curve& curve : curves_) {
    if (curve.points.empty() || curve.thin) continue;
    labels.push_back({frame_.Y(curve.points.back().value), &curve});
  }
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
  for (size_t index = 1; index < labels.size(); ++index) {
    labels[index].y = std::max(labels[index].y, labels[index - 1].y + kLabelRow);
  }
  double lowest = frame_.bottom() - 8;  // clear of the last tick
  for (size_t index = labels.size(); index-- > 0; lowest -= kLabelRow) {
    labels[index].y = std::min(labels[index].y, lowest);
    lowest = labels[index].y;
  }
  for (const Label& label : labels) {
    svg_.Text(frame_.right() + 6, label.y + 4, LabelOf(*label.curve),
              InkClass(label.curve->colour) + " label");
  }
}

// Adds a column with a title around each step that has values.
void CurveDrawing::DrawHits() {
  std::map<double, std::string> titles;
  for (const Curve& curve : curves_) {
    for (const CurvePoint& point : curve.points) {
      std::string& title = titles[point.step];
      title += fmt::format("\n{} {}", curve.name.empty() ? chart_.title : curve.name,
                           ValueText(point.value, chart_.unit));
    }
  }
  const size_t every = titles.size() / kMostTitles + 1;
  std::vector<std::pair<double, std::string>> shown;
  size_t index = 0;
  for (auto& [step, title] : titles) {
    if (index++ % every == 0 || index == titles.size()) {
      shown.emplace_back(step, fmt::format("step {}{}", CountText(std::llround(step)), title));
    }
  }
  for (size_t i = 0; i < shown.size(); ++i) {
    const double x = frame_.X(shown[i].first);
    const double left = i == 0 ? frame_.area.x : (x + frame_.X(shown[i - 1].first)) / 2;
    const double right =
        i + 1 == shown.size() ? frame_.right() : (x + frame_.X(shown[i + 1].first)) / 2;
    svg_.Mark({left, frame_.area.y, right - left, frame_.area.height}, "hit", shown[i].second);
  }
}

}  // namespace

Svg CurvePlot(const CurveChart& chart, double width) { return CurveDrawing(chart, width).Draw(); }

std::vector<CurvePoint> ThinnedOut(const std::vector<CurvePoint>& points, size_t count) {
  if (points.size() <= count || count < 4) return points;
  const size_t num_stretches = count / 2 - 1;
  std::vector<CurvePoint> kept = {points.front()};
  for (size_t index = 0; index < num_stretches; ++index) {
    const auto first =
        points.begin() + static_cast<ptrdiff_t>(index * points.size() / num_stretches);
    const auto end =
        points.begin() + static_cast<ptrdiff_t>((index + 1) * points.size() / num_stretches);
    const auto [low, high] = std::minmax_element(
        first, end, [](const CurvePoint& a, const CurvePoint& b) { return a.value < b.value; });
    kept.push_back(std::min(low, high)[0]);
    if (low != high) kept.push_back(std::max(low, high)[0]);
  }
  kept.push_back(points.back());
  const auto same = [](const CurvePoint& a, const CurvePoint& b) { return a.step == b.step; };
  kept.erase(std::unique(kept.begin(), kept.end(), same), kept.end());
  return kept;
}

}  // namespace thimble
