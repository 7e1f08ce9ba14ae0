// What plots with axes share: ticks at round numbers, units, the area between the axes, legends and
// the phases of a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/plan/program_record.h"
#include "thimble/report/plots/svg.h"

namespace thimble {

inline constexpr double kFontSize = 11;  // as plot_style.cc has it

// Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `count` of them.
// Empty where there is no range, or one that is too small for numbers of this size.
std::vector<double> RoundTicks(double low, double high, int count);
// Powers of ten within [low, high], with 2 and 5 times them where there are few; not all of them
// where there are many. low > 0.
std::vector<double> LogTicks(double low, double high);
// The same for steps, from 0: whole numbers only.
std::vector<double> StepTicks(double high, int count);
// "0.05", "12k", "3M": as short as ticks are read.
std::string TickText(double value);

// "13.11 MB (13,107,200 bytes)"; below a kilobyte "17 bytes".
std::string ExactBytes(size_t bytes);

// The unit in which an axis up to `max_bytes` has short numbers.
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

// Lines across the area and numbers beside it; `factor` divides what is written.
void DrawYTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double factor = 1);
// Numbers `below` the area, with short lines.
void DrawXTicks(Svg& svg, const Frame& frame, const std::vector<double>& ticks, double below);

// A colour and what it stands for.
struct LegendEntry {
  std::string css_class;
  std::string text;
};
// Rows of entries, as many in each as fit; returns the height they take, from `y` down.
double DrawLegend(Svg& svg, const Box& area, const std::vector<LegendEntry>& entries);
double LegendHeight(double width, const std::vector<LegendEntry>& entries);

// Forward, backward and update as a band of this height below the area, whose x axis is the steps.
inline constexpr double kPhaseBandHeight = 16;
void DrawPhases(Svg& svg, const Frame& frame, const std::vector<StepRecord>& steps);

// As much of a text as this width has room for, with "…" where some is missing.
std::string Clipped(std::string_view text, double width);

// "conv2d_grad_weight, block2.layer.2.conv1": what a step does; steps of the plan or "" behind
// them.
std::string StepText(const PlanRecord& plan, size_t step);

}  // namespace thimble
