#include "thimble/base/philox.h"

#include <cmath>

namespace thimble {

float NormalFloat(uint32_t word_a, uint32_t word_b) {
  // 1 - u lies in (0, 1], so the logarithm is finite.
  const double u = 1.0 - static_cast<double>(UniformFloat(word_a));
  const double angle = 6.283185307179586 * static_cast<double>(UniformFloat(word_b));
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(angle));
}

}  // namespace thimble
