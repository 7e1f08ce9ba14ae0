// Passes over the samples of x (B, ..., C) for the CPU kernels of the group-norm ops: sums per
// channel, and element-wise work with constants per channel, both for a chunk of one sample.
//
// The chunks of a sample depend on its own shape alone, and partial results are combined in chunk
// order: results depend neither on the number of threads nor on the batch.
#pragma once

#include <cstddef>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/batch_norm/row_passes.h"
#include "thimble/tensor/shape.h"

namespace thimble {

struct SampleChunks {
  size_t samples;
  size_t rows;  // of a sample
  size_t channels;
  size_t rows_per_chunk;
  size_t chunks;  // of a sample

  // For x of shape (B, ..., C).
  explicit SampleChunks(const Shape& x);
  // A chunk's first element in x, and its rows.
  size_t ElementOf(size_t sample, size_t chunk) const {
    return (sample * rows + chunk * rows_per_chunk) * channels;
  }
  size_t RowsOf(size_t chunk) const;
};

// mean, squares: (C). The mean of each channel over the rows of a chunk and the sum of squared
// distances from it.
void MeasureChunk(const SampleChunks& cut, size_t sample, size_t chunk, ConstNumbers x,
                  double* mean, double* squares);

// y = n(x) or, with ReLU, max(n(x), 0), as in row_passes.h; y may be x.
void NormalizeChunk(const SampleChunks& cut, size_t sample, size_t chunk, const ChannelNorm& norm,
                    ConstNumbers x, Numbers y);

// sum_dy = sum of dy; sum_product = sum of dy * (x - mean). Both (C).
void SumChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                       const ChannelNorm& norm, ConstNumbers x, ConstNumbers dy, double* sum_dy,
                       double* sum_product);

// The gradient terms from a sample's statistics, for each channel (C).
struct SampleSlopes {
  const float* offset;
  const float* slope;
};

// dx = scale * dy - offset - (x - mean) * slope, plus `other` unless it is null; dx may be x, dy or
// other.
void CombineChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                           const ChannelNorm& norm, const SampleSlopes& slopes, ConstNumbers x,
                           ConstNumbers dy, ConstNumbers other, Numbers dx);

// Runs `steps` for every sample: Prepare(sample), Sum(sample, chunk) for all its chunks,
// Finish(sample), Write(sample, chunk) for all its chunks.
template <class Steps>
void RunSteps(ThreadPool& pool, const SampleChunks& cut, Steps& steps) {
  // With this many samples per thread, the load is balanced without chunks. A thread then finds the
  // data it overwrites in its cache.
  constexpr size_t kSamplesPerThread = 4;
  if (cut.samples >= kSamplesPerThread * static_cast<size_t>(pool.num_threads())) {
    pool.Run(cut.samples, [&](size_t sample, size_t /*thread*/) {
      steps.Prepare(sample);
      for (size_t chunk = 0; chunk < cut.chunks; ++chunk) steps.Sum(sample, chunk);
      steps.Finish(sample);
      for (size_t chunk = cut.chunks; chunk-- > 0;) steps.Write(sample, chunk);
    });
    return;
  }
  const auto for_each_chunk = [&](auto step) {
    pool.Run(cut.samples * cut.chunks,
             [&](size_t task, size_t /*thread*/) { step(task / cut.chunks, task % cut.chunks); });
  };
  for (size_t sample = 0; sample < cut.samples; ++sample) steps.Prepare(sample);
  for_each_chunk([&](size_t sample, size_t chunk) { steps.Sum(sample, chunk); });
  for (size_t sample = 0; sample < cut.samples; ++sample) steps.Finish(sample);
  for_each_chunk([&](size_t sample, size_t chunk) { steps.Write(sample, chunk); });
}

}  // namespace thimble
