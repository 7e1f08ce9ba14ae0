// The state of loss scaling, and kernels of the ops that use it.
#pragma once

#include <cmath>
#include <cstddef>

#include "thimble/graph/kernel.h"

namespace thimble {

// The entries of the state, an f32 array. Counts are exact up to 2^24.
enum LossScaleEntry : int {
  kScale = 0,        // the loss is multiplied by it
  kGoodUpdates = 1,  // since the last change of the scale
  kSkipped = 2,      // updates in which a gradient was not finite
  kNotFinite = 3,    // checks of this update that found a gradient that is not finite
  kNumScaleEntries = 4,
};

struct CheckGradientsCpu {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct CheckGradientsCuda {
  static constexpr bool kTakesShortNumbers = true;
  static constexpr bool kTakesPacked = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct ScaleLossCuda {
  static void Run(const KernelCall& call);
};

struct AdjustLossScaleCuda {
  static void Run(const KernelCall& call);
};

// How the scale changes. GPU code uses it too.
struct LossScaleRule {
  float interval;  // good updates after which the scale grows; 0: never
  float factor;    // it grows and shrinks by this
  float floor;     // never below this
  float ceiling;   // never above this

  // After an update: `state` has the entries above.
  constexpr void Adjust(const float* state, float* next) const {
    const bool good = state[kNotFinite] == 0;
    const bool grows = good && interval > 0 && state[kGoodUpdates] + 1 >= interval;
    float scale = state[kScale];
    if (grows && scale * factor <= ceiling) scale *= factor;
    if (!good && interval > 0) scale = scale / factor > floor ? scale / factor : floor;
    const float good_updates = good && !grows ? state[kGoodUpdates] + 1 : 0;
    const float skipped = state[kSkipped] + (good ? 0.0F : 1.0F);
    next[kScale] = scale;
    next[kGoodUpdates] = good_updates;
    next[kSkipped] = skipped;
    next[kNotFinite] = 0;
  }
};

// The factor of the gradients of a scaled loss, whose squares add up to `squares`; 0 if one is not
// finite. `clip` limits the norm of the true gradient; 0: no limit. GPU code uses it too.
#ifdef __CUDACC__
__host__ __device__
#endif
    inline double
    GradientFactor(double squares, double scale, double clip) {
  if (!(squares - squares == 0)) return 0;
  const double norm = std::sqrt(squares) / scale;
  return (clip > 0 && norm > clip ? clip / norm : 1) / scale;
}

LossScaleRule RuleOf(const Attributes& attributes);

}  // namespace thimble
