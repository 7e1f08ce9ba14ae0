// Passes over a matrix of rows and channels (NHWC activations, all axes but the last as rows): sums
// per channel, and element-wise work with constants per channel. The CPU kernels of the batch-norm
// ops are built from these.
//
// Rows may be divided into parts, each with its own sums and constants (ghost batch norm). The
// chunks of a part depend only on its number of rows, so that a part gives the same bits as if it
// were alone. A reduction gives one partial result per chunk, and those of a part are combined in
// chunk order, so results do not depend on the number of threads. The chunks of all parts are one
// job of the pool, so that many small parts keep the threads as busy as one large one.
#pragma once

#include <algorithm>
#include <cstddef>

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/attributes.h"
#include "thimble/ops/batch_norm/row_passes.h"
#include "thimble/tensor/shape.h"

namespace thimble {

class ThreadPool;

// The rows of a part.
struct RowChunks {
  size_t rows = 0;
  size_t rows_per_chunk = 1;
  size_t num_chunks = 0;

  RowChunks(size_t num_rows, size_t channels);
};

struct ChannelRows {
  size_t channels;
  size_t num_parts;
  size_t num_larger;  // number of first parts that have one more sample
  RowChunks larger;
  RowChunks smaller;
  size_t num_chunks;  // of all parts

  // For x of shape (..., C), its samples divided into parts as attribute `group` says.
  ChannelRows(const Shape& x, const Attributes& attributes);

  const RowChunks& part(size_t index) const { return index < num_larger ? larger : smaller; }
  size_t FirstRow(size_t part) const {
    const size_t before = std::min(part, num_larger);
    return before * larger.rows + (part - before) * smaller.rows;
  }
  size_t FirstChunk(size_t part) const {
    const size_t before = std::min(part, num_larger);
    return before * larger.num_chunks + (part - before) * smaller.num_chunks;
  }
  // Statistics of all parts: (parts, C).
  size_t num_statistics() const { return num_parts * channels; }
  // Doubles that the reductions need: two per chunk and channel.
  size_t num_partials() const { return 2 * num_chunks * channels; }

 private:
  ChannelRows(const Shape& x, const NearlyEqualParts& parts);
};

// gamma / sqrt(variance + epsilon), the scale of a channel. Shared by forward and backward, so that
// ReLU switches at the same x in both.
float ChannelScale(float gamma, float variance, double epsilon);

// mean, squares: (parts, C). The mean of each channel and the sum of squared distances from it;
// zero if there are no rows. `partials` is scratch.
void MeasureChannels(ThreadPool& pool, const ChannelRows& rows, ConstNumbers x, double* partials,
                     double* mean, double* squares);

// y as defined in row_passes.h; y may be x. Here and below, mean and scale of a ChannelNorm are
// (parts, C).
void NormalizeChannels(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       ConstNumbers x, Numbers y);

// sum_dy = sum of dy; sum_product = sum of dy * (x - mean). Both (parts, C). `partials` is scratch.
void SumChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                         ConstNumbers x, ConstNumbers dy, double* partials, double* sum_dy,
                         double* sum_product);

// dx = scale * (dy - offset - (x - mean) * slope), plus `other` unless it is null; dx may be x, dy
// or other. offset, slope: (parts, C).
void CombineChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                             ConstNumbers x, ConstNumbers dy, const float* offset,
                             const float* slope, ConstNumbers other, Numbers dx);

// The same two passes for a dy that exists piece by piece: chunks [begin, end) of all parts, and dy
// from the first row of chunk `begin` on. Merging requires that all chunks have been summed.
struct GradientChunks {
  size_t begin;
  size_t end;
  ConstNumbers dy;
};
void SumChunkGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       ConstNumbers x, const GradientChunks& chunks, double* partials);
void MergeChunkGradients(ThreadPool& pool, const ChannelRows& rows, const double* partials,
                         double* sum_dy, double* sum_product);
void CombineChunkGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           ConstNumbers x, const GradientChunks& chunks, const float* offset,
                           const float* slope, ConstNumbers other, Numbers dx);

// dx = scale * dy; dx may be x or dy. x is read only for ReLU.
void ScaleChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           ConstNumbers x, ConstNumbers dy, Numbers dx);

}  // namespace thimble
