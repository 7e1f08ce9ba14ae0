// The ten classes of the data set "shapes" as signed distances to their outlines: negative inside,
// positive outside. All fit into the unit circle around the origin and use only + - * min max sqrt,
// which give the same results on every IEEE machine, so that the images are the same bytes
// everywhere.
//
// Mirroring left to right turns none of them into another class.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace thimble {

enum class ShapeClass : int32_t {
  kDisc,
  kRing,
  kSquare,
  kTriangle,
  kPlus,
  kStar,
  kCrescent,
  kCorner,
  kBars,
  kChecker,
};
inline constexpr int64_t kShapeClasses = 10;

// Chebyshev distance to an axis-parallel box, so that its level lines have sharp corners.
inline float BoxDistance(float u, float v, float half_width, float half_height) {
  return std::max(std::abs(u) - half_width, std::abs(v) - half_height);
}

inline float CircleDistance(float u, float v, float radius) {
  return std::sqrt(u * u + v * v) - radius;
}

struct DiscOutline {
  float operator()(float u, float v) const { return CircleDistance(u, v, 0.85F); }
};

struct RingOutline {
  float operator()(float u, float v) const { return std::abs(CircleDistance(u, v, 0.77F)) - 0.2F; }
};

struct SquareOutline {
  float operator()(float u, float v) const { return BoxDistance(u, v, 0.71F, 0.71F); }
};

// Three half-planes at distance 1/2 of the origin, so that the tips lie on the unit circle.
struct TriangleOutline {
  float operator()(float u, float v) const {
    constexpr float kHalfSqrt3 = 0.8660254F;
    return std::max(v, kHalfSqrt3 * std::abs(u) - 0.5F * v) - 0.5F;
  }
};

struct PlusOutline {
  float operator()(float u, float v) const {
    return std::min(BoxDistance(u, v, 0.94F, 0.27F), BoxDistance(u, v, 0.27F, 0.94F));
  }
};

// A five-pointed star is the set of points outside at most one of five half-planes: the second
// largest of their distances decides. The lines are cos(72 degrees) from the origin when the tips
// have distance 1.
struct StarOutline {
  float operator()(float u, float v) const {
    constexpr float kCos36 = 0.809017F;
    constexpr float kSin36 = 0.58778525F;
    constexpr float kCos72 = 0.309017F;
    constexpr float kSin72 = 0.95105652F;
    const float distances[5] = {v, kSin72 * u + kCos72 * v, -kSin72 * u + kCos72 * v,
                                kSin36 * u - kCos36 * v, -kSin36 * u - kCos36 * v};
    float largest = distances[0];
    float second = -2;
    for (int i = 1; i < 5; ++i) {
      second = std::max(second, std::min(largest, distances[i]));
      largest = std::max(largest, distances[i]);
    }
    return second - kCos72;
  }
};

// A disc minus a smaller one that overlaps its side.
struct CrescentOutline {
  float operator()(float u, float v) const {
    return std::max(CircleDistance(u, v, 0.95F), -CircleDistance(u - 0.45F, v, 0.75F));
  }
};

struct CornerOutline {
  float operator()(float u, float v) const {
    return std::min(BoxDistance(u + 0.45F, v, 0.22F, 0.72F),
                    BoxDistance(u, v - 0.5F, 0.67F, 0.22F));
  }
};

struct BarsOutline {
  float operator()(float u, float v) const {
    return BoxDistance(u, std::abs(v) - 0.48F, 0.72F, 0.2F);
  }
};

// Two squares that touch at a corner.
struct CheckerOutline {
  float operator()(float u, float v) const {
    return std::min(BoxDistance(u - 0.35F, v - 0.35F, 0.35F, 0.35F),
                    BoxDistance(u + 0.35F, v + 0.35F, 0.35F, 0.35F));
  }
};

}  // namespace thimble
