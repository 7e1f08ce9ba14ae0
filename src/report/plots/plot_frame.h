// Parts shared by plots with axes: ticks at round numbers, units, the area between the axes,
// legends and the phases of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

inline constexpr double kFontSize = 11;  // as in plot_style.cc

// About `count` round numbers within [low, high], 1, 2 or 5 times a power of ten apart. Empty if
// the range is empty or too small for doubles of this size.
std::vector<double> RoundTicks(double low, double high, int count);
// Powers of ten within [low, high]; if there are few, also 2 and 5 times these; if there are many,
// only some of them. Requires low > 0.
std::vector<double> LogTicks(double low, double high);
// Ticks for steps, from 0: whole numbers only.
std::vector<double> StepTicks(double high, int count);
// A short label: "0.05", "12k", "3M".
std::string TickText(double value);

// "13.11 MB (13,107,200 bytes)"; below a kilobyte "17 bytes".
std::string ExactBytes(size_t bytes);

// The unit that gives short labels on an axis up to `max_bytes`.
struct ByteUnit {
  double bytes = 1;
  std::string_view name = "B";
};
ByteUnit UnitFor(size_t max_bytes);

// The area between the axes and what it shows.
struct Frame {
  Box area;
  double x_low = 0, x_high = 1;
  double y_low = 0, y_high = 1;
  bool y_log = false;

  double right() const { return area.x + area.width; }
  double bottom() const { return area.y + area.height; }
  double X(double value) const;
  double Y(double value) const;
};

// Draws lines across the area and labels next to it; labels are divided by `factor`.
void DrawYTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double factor = 1);
// Draws labels with short lines at `below` under the area.
void DrawXTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double below);

// A colour and its meaning.
struct LegendEntry {
  std::string css_class;
  std::string text;
};
// Draws entries in rows, as many per row as fit into `area`; returns the height of the rows.
double DrawLegend(Svg& svg, const Box& area, const std::vector<LegendEntry>& entries);
double LegendHeight(double width, const std::vector<LegendEntry>& entries);

// Draws forward, backward and update as a band of this height below the area, whose x axis is the
// steps.
inline constexpr double kPhaseBandHeight = 16;
void DrawPhases(Svg& svg, const Frame& frame, const std::vector<StepRecord>& steps);

// As much of the text as fits into this width, with "…" if it was cut.
std::string Clipped(std::string_view text, double width);

// What a step does: "conv2d_grad_weight, block2.layer.2.conv1"; "" for a step after the last.
std::string StepText(const PlanRecord& plan, size_t step);

}  // namespace thimble
