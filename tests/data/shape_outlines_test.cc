#include "thimble/data/shape_outlines.h"

#include <gtest/gtest.h>

#include <cmath>

namespace thimble {
namespace {

// Calls `check(outline, name)` for each of the ten.
template <class Check>
void ForEachOutline(Check check) {
  check(DiscOutline(), "disc");
  check(RingOutline(), "ring");
  check(SquareOutline(), "square");
  check(TriangleOutline(), "triangle");
  check(PlusOutline(), "plus");
  check(StarOutline(), "star");
  check(CrescentOutline(), "crescent");
  check(CornerOutline(), "corner");
  check(BarsOutline(), "bars");
  check(CheckerOutline(), "checker");
}

// Share of a fine grid over [-1, 1]^2 that is inside.
template <class Outline>
double Area(Outline outline) {
  constexpr int kSteps = 400;
  int inside = 0;
  for (int y = 0; y < kSteps; ++y) {
    for (int x = 0; x < kSteps; ++x) {
      const float u = (static_cast<float>(x) + 0.5F) * 2 / kSteps - 1;
      const float v = (static_cast<float>(y) + 0.5F) * 2 / kSteps - 1;
      inside += outline(u, v) < 0 ? 1 : 0;
    }
  }
  return 4.0 * inside / (kSteps * kSteps);
}

TEST(ShapeOutlinesTest, NothingReachesBeyondTheUnitCircle) {
  ForEachOutline([](auto outline, const char* name) {
    for (int degree = 0; degree < 360; ++degree) {
      const double angle = degree * 3.14159265358979 / 180;
      const auto u = static_cast<float>(1.01 * std::cos(angle));
      const auto v = static_cast<float>(1.01 * std::sin(angle));
      EXPECT_GT(outline(u, v), 0) << name << " at " << degree << " degrees";
    }
  });
}

TEST(ShapeOutlinesTest, AreasAreThoseOfTheFigures) {
  constexpr double kPi = 3.14159265358979;
  EXPECT_NEAR(Area(DiscOutline()), kPi * 0.85 * 0.85, 0.02);
  EXPECT_NEAR(Area(RingOutline()), kPi * (0.97 * 0.97 - 0.57 * 0.57), 0.02);
  EXPECT_NEAR(Area(SquareOutline()), 1.42 * 1.42, 0.02);
  EXPECT_NEAR(Area(TriangleOutline()), 3 * std::sqrt(3.0) / 4, 0.02);
  EXPECT_NEAR(Area(PlusOutline()), 4 * (2 * 0.94 * 0.27 - 0.27 * 0.27), 0.02);
  // A pentagram with tips on the unit circle.
  EXPECT_NEAR(Area(StarOutline()), 1.12257, 0.02);
  EXPECT_NEAR(Area(CheckerOutline()), 2 * 0.7 * 0.7, 0.02);
}

TEST(ShapeOutlinesTest, NoFigureIsTooSmallToSee) {
  ForEachOutline([](auto outline, const char* name) { EXPECT_GT(Area(outline), 0.8) << name; });
}

// Antialiasing needs distances that change at most as fast as the position.
TEST(ShapeOutlinesTest, DistancesGrowNoFasterThanTheWay) {
  ForEachOutline([](auto outline, const char* name) {
    constexpr float kStep = 0.01F;
    for (float v = -1.2F; v < 1.2F; v += 0.05F) {
      for (float u = -1.2F; u < 1.2F; u += 0.05F) {
        const float here = outline(u, v);
        EXPECT_LE(std::abs(outline(u + kStep, v) - here), kStep * 1.001F) << name;
        EXPECT_LE(std::abs(outline(u, v + kStep) - here), kStep * 1.001F) << name;
      }
    }
  });
}

}  // namespace
}  // namespace thimble
