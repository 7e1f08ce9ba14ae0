// Softmax of rows of floats in scratch, and its gradient. Compiled per SIMD target.
#pragma once

#include <cstddef>

namespace thimble {

// Rows are padded to whole vectors of any target.
inline constexpr size_t kSoftmaxPadding = 16;
constexpr size_t PaddedSoftmaxWidth(size_t width) {
  return (width + kSoftmaxPadding - 1) / kSoftmaxPadding * kSoftmaxPadding;
}

struct SoftmaxRows {
  size_t rows = 0;
  size_t width = 0;   // numbers of a row
  size_t stride = 0;  // floats from one row to the next: at least the padded width
};

// Each row becomes the softmax of factor * row. A NaN or an infinite maximum makes the row NaN. The
// padding is read, but does not matter, and is overwritten. A row's bits depend on its own numbers
// alone. Requires width >= 1.
void SoftmaxInPlace(const SoftmaxRows& shape, float factor, float* rows);

// gradients: on entry those of the probabilities, on return those of what softmax was applied to,
// times `factor`. The padding is read, but does not matter, and may be overwritten.
// Requires width >= 1.
void SoftmaxGradientInPlace(const SoftmaxRows& shape, float factor, const float* probabilities,
                            float* gradients);

}  // namespace thimble
