// Passes over a matrix of rows and channels (NHWC activations, all axes but the last as rows): sums
// per channel, and element-wise work with constants per channel. The CPU kernels of the batch-norm
// ops are made of these.
//
// Rows are cut into chunks by shape alone. A reduction gives one partial result per chunk, and they
// are combined in the order of the chunks, so results do not depend on the number of threads.
#pragma once

#include <cstddef>

#include "thimble/tensor/shape.h"

namespace thimble {

class ThreadPool;

struct ChannelRows {
  size_t rows;
  size_t channels;
  size_t rows_per_chunk;
  size_t num_chunks;

  // For x of shape (..., C).
  explicit ChannelRows(const Shape& x);
  // Doubles that the reductions need: two per chunk and channel.
  size_t num_partials() const { return 2 * num_chunks * channels; }
};

// n(x) = (x - mean) * scale + shift, and y = n(x) or, with ReLU, max(n(x), 0). Where a gradient is
// asked for, dy below is the one that comes through ReLU: zero where n(x) <= 0. All arrays: (C).
struct ChannelNorm {
  const float* mean;
  const float* scale;
  const float* shift;
  bool relu;
};

// gamma / sqrt(variance + epsilon), the scale of a channel. Forward and backward both ask here, so
// that both see ReLU switch at the same x.
float ChannelScale(float gamma, float variance, double epsilon);

// mean, squares: (C). The mean of each channel and the sum of squared distances from it; zero where
// there are no rows. `partials` is scratch.
void MeasureChannels(ThreadPool& pool, const ChannelRows& rows, const float* x, double* partials,
                     double* mean, double* squares);

// y as above; y may be x.
void NormalizeChannels(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       const float* x, float* y);

// sum_dy = sum of dy; sum_product = sum of dy * (x - mean). Both (C). `partials` is scratch.
void SumChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                         const float* x, const float* dy, double* partials, double* sum_dy,
                         double* sum_product);

// dx = scale * (dy - offset - (x - mean) * slope), plus `other` unless it is null; dx may be x, dy
// or other.
void CombineChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                             const float* x, const float* dy, const float* offset,
                             const float* slope, const float* other, float* dx);

// dx = scale * dy; dx may be x or dy. x is read for ReLU only.
void ScaleChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           const float* x, const float* dy, float* dx);

}  // namespace thimble
