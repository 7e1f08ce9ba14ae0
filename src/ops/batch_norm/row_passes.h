// Passes over some rows of a matrix of rows and channels (NHWC activations, all axes but the last
// as rows), by one thread: sums per channel, and element-wise work with constants per channel. The
// CPU kernels of batch norm (channel_passes.h) and group norm (sample_passes.h) use these on each
// chunk.
//
// x, y, dy, dx, other: (rows, C), numbers of any type; all other arrays: (C). y may be x; dx may be
// x, dy or other, if their types have the same size.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/numbers.h"

namespace thimble {

// n(x) = (x - mean) * scale + shift, and y = n(x) or, with ReLU, max(n(x), 0). In the gradients
// below, dy is the gradient after ReLU: zero where n(x) <= 0.
struct ChannelNorm {
  const float* mean;
  const float* scale;
  const float* shift;
  bool relu;
};

// The mean of the rows and the sum of squared distances from it. Requires at least one row.
void MeasureRows(ConstNumbers x, size_t rows, size_t channels, double* mean, double* squares);

void NormalizeRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                   Numbers y);

// Sums of dy and of dy * (x - mean).
void SumRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                     ConstNumbers dy, double* sum_dy, double* sum_product);

// dx = scale * (dy - offset - (x - mean) * slope), plus `other` unless it is null.
void CombineRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                         ConstNumbers dy, const float* offset, const float* slope,
                         ConstNumbers other, Numbers dx);

// dx = scale * dy - offset - (x - mean) * slope, plus `other` unless it is null.
void CombineSampleRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, const float* offset, const float* slope, ConstNumbers other,
                       Numbers dx);

// dx = scale * dy. x is read only for ReLU.
void ScaleRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, Numbers dx);

}  // namespace thimble
