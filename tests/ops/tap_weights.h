// Known weights of the taps of dynamic convolutions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace thimble {

// Logits whose softmax is these weights, which add up to 1.
inline std::vector<float> LogitsOf(std::vector<float> weights) {
  for (float& weight : weights) weight = std::log(weight);
  return weights;
}

inline void ExpectFloats(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_FLOAT_EQ(actual[i], expected[i]) << i;
}

}  // namespace thimble
