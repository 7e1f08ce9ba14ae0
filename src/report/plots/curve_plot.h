// Curves over the steps of a run: loss, accuracy, learning rate, loss scale.
#pragma once

#include <string>
#include <vector>

#include "thimble/report/plots/svg.h"

namespace thimble {

struct CurvePoint {
  double step = 0;
  double value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

struct Curve {
  std::string name;
  size_t colour = 0;               // LineClass
  std::vector<CurvePoint> points;  // by step; all numbers finite
  bool thin = false;               // noisy values below a smoother curve, or one of many curves
                                   // without names; has no label
};

struct CurveChart {
  std::string title;  // "loss"
  std::string unit;   // "%" or empty
  std::vector<Curve> curves;
  bool from_zero = false;  // the axis starts at 0
};

// Lines with their names and last values on the right; titles give the values of a step. Values
// that span decades get a logarithmic axis, unless they are percentages or the axis starts at 0.
// Long curves are thinned out: of each interval the smallest and the largest value are kept.
Svg CurvePlot(const CurveChart& chart, double width);

// At most about `count` points that show the same curve.
std::vector<CurvePoint> ThinnedOut(const std::vector<CurvePoint>& points, size_t count);

}  // namespace thimble
