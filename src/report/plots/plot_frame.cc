#include "thimble/report/plots/plot_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/base/byte_size.h"
#include "thimble/report/units.h"

namespace thimble {
namespace {

constexpr double kSwatch = 10;
constexpr double kLegendRow = 18;

double EntryWidth(const LegendEntry& entry) {
  return kSwatch + 5 + TextWidth(entry.text, kFontSize) + 14;
}

// Calls draw(entry, x, y) for each entry, with y from 0; returns the height of all rows.
template <class Draw>
double LayOutLegend(double width, const std::vector<LegendEntry>& entries, const Draw& draw) {
  double x = 0;
  double y = 0;
  for (const LegendEntry& entry : entries) {
    const double entry_width = EntryWidth(entry);
    if (x > 0 && x + entry_width > width + 14) {
      x = 0;
      y += kLegendRow;
    }
    draw(entry, x, y);
    x += entry_width;
  }
  return entries.empty() ? 0 : y + kLegendRow;
}

struct Stretch {
  std::string_view phase;
  size_t first = 0;
  size_t end = 0;
};

std::vector<Stretch> PhasesOf(const std::vector<StepRecord>& steps) {
  std::vector<Stretch> stretches;
  for (size_t step = 0; step < steps.size(); ++step) {
    if (stretches.empty() || stretches.back().phase != steps[step].phase) {
      stretches.push_back({steps[step].phase, step, step});
    }
    stretches.back().end = step + 1;
  }
  return stretches;
}

}  // namespace

std::vector<double> RoundTicks(double low, double high, int count) {
  if (!(high > low) || !std::isfinite(high - low) || count < 1) return {};
  // In a smaller relative range a double cannot represent enough round numbers.
  constexpr double kLeastRange = 1e-12;
  if (high - low < kLeastRange * std::max(std::abs(low), std::abs(high))) return {};
  const double rough = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  // The nearest of 1, 2, 5 and 10, by ratio.
  const double ratio = rough / power;
  const double step = power * (ratio < 1.5 ? 1 : ratio < 3.2 ? 2 : ratio < 7 ? 5 : 10);
  std::vector<double> ticks;
  const double slack = 1e-9 * step;
  for (double index = std::ceil((low - slack) / step); index * step <= high + slack; ++index) {
    ticks.push_back(index == 0 ? 0 : index * step);
  }
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  constexpr int kMostPowers = 7;
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const int every = (last - first) / kMostPowers + 1;
  for (int power = first; power <= last; power += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor > 1 && last - first > 3) continue;
      const double tick = factor * std::pow(10.0, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> StepTicks(double high, int count) {
  std::vector<double> ticks = RoundTicks(0, high, count);
  std::erase_if(ticks, [](double tick) { return tick != std::floor(tick); });
  return ticks;
}

std::string TickText(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

std::string ExactBytes(size_t bytes) {
  const auto count = static_cast<int64_t>(bytes);
  if (count < 1000) return fmt::format("{} bytes", count);
  return fmt::format("{} ({} bytes)", FormatBytes(count), CountText(count));
}

ByteUnit UnitFor(size_t max_bytes) {
  if (max_bytes >= 2'000'000'000) return {1e9, "GB"};
  if (max_bytes >= 2'000'000) return {1e6, "MB"};
  if (max_bytes >= 2'000) return {1e3, "kB"};
  return {};
}

double Frame::X(double value) const {
  return area.x + area.width * (value - x_low) / std::max(x_high - x_low, 1e-300);
}

double Frame::Y(double value) const {
  const double share = y_log ? std::log(value / y_low) / std::log(y_high / y_low)
                             : (value - y_low) / std::max(y_high - y_low, 1e-300);
  return bottom() - area.height * share;
}

void DrawYTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double factor) {
  for (const double tick : ticks) {
    const double y = frame.Y(tick);
    svg.Line(frame.area.x, y, frame.right(), y, "grid");
    svg.Text(frame.area.x - 6, y + 4, TickText(tick / factor), "muted", Anchor::kEnd);
  }
}

void DrawXTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double below) {
  const double y = frame.bottom() + below;
  for (const double tick : ticks) {
    svg.Line(frame.X(tick), y, frame.X(tick), y + 4, "axis");
    svg.Text(frame.X(tick), y + 15, TickText(tick), "muted", Anchor::kMiddle);
  }
}

double DrawLegend(Svg& svg, const Box& area, const std::vector<LegendEntry>& entries) {
  return LayOutLegend(area.width, entries, [&](const LegendEntry& entry, double x, double y) {
    svg.Rect({area.x + x, area.y + y + 2, kSwatch, kSwatch}, entry.css_class);
    svg.Text(area.x + x + kSwatch + 5, area.y + y + 11, entry.text, "");
  });
}

double LegendHeight(double width, const std::vector<LegendEntry>& entries) {
  return LayOutLegend(width, entries, [](const LegendEntry&, double, double) {});
}

void DrawPhases(Svg& svg, const Frame& frame, const std::vector<StepRecord>& steps) {
  // A plan normally has three stretches; many more would be noise.
  constexpr size_t kMostShown = 12;
  const std::vector<Stretch> stretches = PhasesOf(steps);
  if (stretches.size() > kMostShown) return;
  for (const Stretch& stretch : stretches) {
    const double left = frame.X(static_cast<double>(stretch.first));
    const double right = frame.X(static_cast<double>(stretch.end));
    const double y = frame.bottom() + 2;
    svg.Rect({left + 0.5, y, std::max(right - left - 1, 0.5), kPhaseBandHeight - 2}, "band");
    if (TextWidth(stretch.phase, kFontSize) + 6 < right - left) {
      svg.Text((left + right) / 2, y + 10.5, stretch.phase, "", Anchor::kMiddle);
    }
  }
}

std::string Clipped(std::string_view text, double width) {
  if (TextWidth(text, kFontSize) <= width) return std::string(text);
  size_t end = text.size();
  while (end > 0 && TextWidth(text.substr(0, end), kFontSize) > width - kFontSize) {
    do {
      --end;
    } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  }
  return fmt::format("{}…", text.substr(0, end));
}

std::string StepText(const PlanRecord& plan, size_t step) {
  if (step >= plan.steps.size()) return {};
  const StepRecord& record = plan.steps[step];
  return record.layer.empty() ? record.op : fmt::format("{}, {}", record.op, record.layer);
}

}  // namespace thimble
