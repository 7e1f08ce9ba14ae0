#include "thimble/ops/batch_norm/channel_passes.h"

#include <algorithm>
#include <cmath>

#include "thimble/device/cpu/parallel_elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/batch_norm/channel_passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/ops/batch_norm/channel_passes-inl.h"

#if HWY_ONCE
namespace thimble {
namespace {

// Enough to keep 32 threads busy, few enough that the partial sums of 128 channels stay at 64 KiB.
constexpr size_t kMaxChunks = 32;

size_t RowsPerChunk(size_t rows, size_t channels) {
  const size_t by_size = kElementsPerChunk / std::max<size_t>(1, channels);
  const size_t by_number = (rows + kMaxChunks - 1) / kMaxChunks;
  return std::max<size_t>({1, by_size, by_number});
}

// Calls body(chunk, first row, number of rows) for each chunk.
void ForEachChunk(ThreadPool& pool, const ChannelRows& rows,
                  FunctionRef<void(size_t chunk, size_t begin, size_t count)> body) {
  pool.Run(rows.num_chunks, [&](size_t chunk, size_t /*thread*/) {
    const size_t begin = chunk * rows.rows_per_chunk;
    body(chunk, begin, std::min(rows.rows_per_chunk, rows.rows - begin));
  });
}

// The same from the last chunk to the first: for the pass after a reduction, which finds in the
// cache what was read last.
void ForEachChunkBackwards(ThreadPool& pool, const ChannelRows& rows,
                           FunctionRef<void(size_t begin, size_t count)> body) {
  pool.Run(rows.num_chunks, [&](size_t index, size_t /*thread*/) {
    const size_t begin = (rows.num_chunks - 1 - index) * rows.rows_per_chunk;
    body(begin, std::min(rows.rows_per_chunk, rows.rows - begin));
  });
}

}  // namespace

HWY_EXPORT(MeasureRows);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(SumRowGradients);
HWY_EXPORT(CombineRowGradients);
HWY_EXPORT(ScaleRowGradients);

ChannelRows::ChannelRows(const Shape& x) : channels(static_cast<size_t>(x[x.rank() - 1])) {
  rows = channels == 0 ? 0 : static_cast<size_t>(x.elements()) / channels;
  rows_per_chunk = RowsPerChunk(rows, channels);
  num_chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
}

float ChannelScale(float gamma, float variance, double epsilon) {
  return static_cast<float>(gamma / std::sqrt(variance + epsilon));
}

void MeasureChannels(ThreadPool& pool, const ChannelRows& rows, const float* x, double* partials,
                     double* mean, double* squares) {
  const size_t channels = rows.channels;
  ForEachChunk(pool, rows, [&](size_t chunk, size_t begin, size_t count) {
    double* partial = partials + 2 * chunk * channels;
    HWY_DYNAMIC_DISPATCH(MeasureRows)
    (x + begin * channels, count, channels, partial, partial + channels);
  });
  std::fill_n(mean, channels, 0.0);
  std::fill_n(squares, channels, 0.0);
  for (size_t chunk = 0; chunk < rows.num_chunks; ++chunk) {
    const double* partial = partials + 2 * chunk * channels;
    const size_t begin = chunk * rows.rows_per_chunk;
    const double old_count = static_cast<double>(begin);
    const double count = static_cast<double>(std::min(rows.rows_per_chunk, rows.rows - begin));
    for (size_t c = 0; c < channels; ++c) {
      const double distance = partial[c] - mean[c];
      mean[c] += distance * count / (old_count + count);
      squares[c] +=
          partial[channels + c] + distance * distance * old_count * count / (old_count + count);
    }
  }
  // Rounding can leave a tiny negative number where all values are equal; NaN must stay.
  for (size_t c = 0; c < channels; ++c) squares[c] = squares[c] < 0 ? 0 : squares[c];
}

void NormalizeChannels(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       const float* x, float* y) {
  ForEachChunkBackwards(pool, rows, [&](size_t begin, size_t count) {
    const size_t first = begin * rows.channels;
    HWY_DYNAMIC_DISPATCH(NormalizeRows)(norm, count, rows.channels, x + first, y + first);
  });
}

void SumChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                         const float* x, const float* dy, double* partials, double* sum_dy,
                         double* sum_product) {
  const size_t channels = rows.channels;
  ForEachChunk(pool, rows, [&](size_t chunk, size_t begin, size_t count) {
    double* partial = partials + 2 * chunk * channels;
    HWY_DYNAMIC_DISPATCH(SumRowGradients)
    (norm, count, channels, x + begin * channels, dy + begin * channels, partial,
     partial + channels);
  });
  std::fill_n(sum_dy, channels, 0.0);
  std::fill_n(sum_product, channels, 0.0);
  for (size_t chunk = 0; chunk < rows.num_chunks; ++chunk) {
    const double* partial = partials + 2 * chunk * channels;
    for (size_t c = 0; c < channels; ++c) {
      sum_dy[c] += partial[c];
      sum_product[c] += partial[channels + c];
    }
  }
}

void CombineChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                             const float* x, const float* dy, const float* offset,
                             const float* slope, const float* other, float* dx) {
  ForEachChunkBackwards(pool, rows, [&](size_t begin, size_t count) {
    const size_t first = begin * rows.channels;
    HWY_DYNAMIC_DISPATCH(CombineRowGradients)
    (norm, count, rows.channels, x + first, dy + first, offset, slope,
     other == nullptr ? nullptr : other + first, dx + first);
  });
}

void ScaleChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           const float* x, const float* dy, float* dx) {
  ForEachChunkBackwards(pool, rows, [&](size_t begin, size_t count) {
    const size_t first = begin * rows.channels;
    HWY_DYNAMIC_DISPATCH(ScaleRowGradients)
    (norm, count, rows.channels, x + first, dy + first, dx + first);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
