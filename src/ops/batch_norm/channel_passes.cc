#include "thimble/ops/batch_norm/channel_passes.h"

#include <algorithm>
#include <cmath>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/batch_norm/batch_norm.h"

namespace thimble {
namespace {

// Per part. Enough to keep 32 threads busy, few enough that the partial sums of 128 channels take
// only 64 KiB.
constexpr size_t kMaxChunks = 32;

// The number of rows in `samples` samples of x.
size_t RowsOf(const Shape& x, int64_t samples) {
  if (x.elements() == 0) return 0;
  return static_cast<size_t>(x.elements() / x[0] / x[x.rank() - 1] * samples);
}

size_t RowsPerChunk(size_t rows, size_t channels) {
  const size_t by_size = kElementsPerChunk / std::max<size_t>(1, channels);
  const size_t by_number = (rows + kMaxChunks - 1) / kMaxChunks;
  return std::max<size_t>({1, by_size, by_number});
}

// Some rows of a part.
struct Chunk {
  size_t index;  // over the chunks of all parts
  size_t part;
  size_t begin;  // row
  size_t count;
};

Chunk ChunkAt(const ChannelRows& rows, size_t index) {
  const size_t in_larger = rows.num_larger * rows.larger.num_chunks;
  const size_t part = index < in_larger
                          ? index / rows.larger.num_chunks
                          : rows.num_larger + (index - in_larger) / rows.smaller.num_chunks;
  const RowChunks& chunks = rows.part(part);
  const size_t begin = (index - rows.FirstChunk(part)) * chunks.rows_per_chunk;
  return {index, part, rows.FirstRow(part) + begin,
          std::min(chunks.rows_per_chunk, chunks.rows - begin)};
}

void ForEachChunk(ThreadPool& pool, const ChannelRows& rows, FunctionRef<void(const Chunk&)> body) {
  pool.Run(rows.num_chunks, [&](size_t index, size_t /*thread*/) { body(ChunkAt(rows, index)); });
}

// The same from the last chunk to the first: the pass after a reduction then finds the data read
// last in the cache.
void ForEachChunkBackwards(ThreadPool& pool, const ChannelRows& rows,
                           FunctionRef<void(const Chunk&)> body) {
  pool.Run(rows.num_chunks, [&](size_t index, size_t /*thread*/) {
    body(ChunkAt(rows, rows.num_chunks - 1 - index));
  });
}

// The constants of one part.
ChannelNorm OfPart(const ChannelNorm& norm, const ChannelRows& rows, size_t part) {
  const size_t first = part * rows.channels;
  return {norm.mean + first, norm.scale + first, norm.shift, norm.relu};
}

// Merges the means and squares of a part's chunks. partials: (chunks, 2, C).
void MergeMeasures(const RowChunks& part, size_t channels, const double* partials, double* mean,
                   double* squares) {
  std::fill_n(mean, channels, 0.0);
  std::fill_n(squares, channels, 0.0);
  for (size_t chunk = 0; chunk < part.num_chunks; ++chunk) {
    const double* partial = partials + 2 * chunk * channels;
    const size_t begin = chunk * part.rows_per_chunk;
    const double old_count = static_cast<double>(begin);
    const double count = static_cast<double>(std::min(part.rows_per_chunk, part.rows - begin));
    for (size_t c = 0; c < channels; ++c) {
      const double distance = partial[c] - mean[c];
      mean[c] += distance * count / (old_count + count);
      squares[c] +=
          partial[channels + c] + distance * distance * old_count * count / (old_count + count);
    }
  }
  // Rounding can give a tiny negative number if all values are equal; NaN must stay.
  for (size_t c = 0; c < channels; ++c) squares[c] = squares[c] < 0 ? 0 : squares[c];
}

// Adds up both sums of a part's chunks. partials: (chunks, 2, C).
void MergeSums(const RowChunks& part, size_t channels, const double* partials, double* first,
               double* second) {
  std::fill_n(first, channels, 0.0);
  std::fill_n(second, channels, 0.0);
  for (size_t chunk = 0; chunk < part.num_chunks; ++chunk) {
    const double* partial = partials + 2 * chunk * channels;
    for (size_t c = 0; c < channels; ++c) {
      first[c] += partial[c];
      second[c] += partial[channels + c];
    }
  }
}

// Calls merge(part's rows, C, its partials, its first results, its second results) for each part.
void MergeParts(ThreadPool& pool, const ChannelRows& rows, const double* partials, double* first,
                double* second, decltype(MergeSums)& merge) {
  pool.Run(rows.num_parts, [&](size_t part, size_t /*thread*/) {
    merge(rows.part(part), rows.channels, partials + 2 * rows.FirstChunk(part) * rows.channels,
          first + part * rows.channels, second + part * rows.channels);
  });
}

}  // namespace

RowChunks::RowChunks(size_t num_rows, size_t channels)
    : rows(num_rows),
      rows_per_chunk(RowsPerChunk(num_rows, channels)),
      num_chunks((num_rows + rows_per_chunk - 1) / rows_per_chunk) {}

ChannelRows::ChannelRows(const Shape& x, const Attributes& attributes)
    : ChannelRows(x, SampleParts(x, attributes)) {}

ChannelRows::ChannelRows(const Shape& x, const NearlyEqualParts& parts)
    : channels(static_cast<size_t>(x[x.rank() - 1])),
      num_parts(static_cast<size_t>(parts.parts)),
      num_larger(static_cast<size_t>(parts.total % parts.parts)),
      larger(RowsOf(x, parts.LargestSize()), channels),
      smaller(RowsOf(x, parts.Size(parts.parts - 1)), channels),
      num_chunks(FirstChunk(num_parts)) {}

float ChannelScale(float gamma, float variance, double epsilon) {
  return static_cast<float>(gamma / std::sqrt(variance + epsilon));
}

void MeasureChannels(ThreadPool& pool, const ChannelRows& rows, ConstNumbers x, double* partials,
                     double* mean, double* squares) {
  const size_t channels = rows.channels;
  ForEachChunk(pool, rows, [&](const Chunk& chunk) {
    double* partial = partials + 2 * chunk.index * channels;
    MeasureRows(x + chunk.begin * channels, chunk.count, channels, partial, partial + channels);
  });
  MergeParts(pool, rows, partials, mean, squares, MergeMeasures);
}

void NormalizeChannels(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       ConstNumbers x, Numbers y) {
  ForEachChunkBackwards(pool, rows, [&](const Chunk& chunk) {
    const size_t first = chunk.begin * rows.channels;
    NormalizeRows(OfPart(norm, rows, chunk.part), chunk.count, rows.channels, x + first, y + first);
  });
}

void SumChunkGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                       ConstNumbers x, const GradientChunks& chunks, double* partials) {
  const size_t channels = rows.channels;
  const size_t first_row = ChunkAt(rows, chunks.begin).begin;
  pool.Run(chunks.end - chunks.begin, [&](size_t index, size_t /*thread*/) {
    const Chunk chunk = ChunkAt(rows, chunks.begin + index);
    double* partial = partials + 2 * chunk.index * channels;
    SumRowGradients(OfPart(norm, rows, chunk.part), chunk.count, channels,
                    x + chunk.begin * channels, chunks.dy + (chunk.begin - first_row) * channels,
                    partial, partial + channels);
  });
}

void MergeChunkGradients(ThreadPool& pool, const ChannelRows& rows, const double* partials,
                         double* sum_dy, double* sum_product) {
  MergeParts(pool, rows, partials, sum_dy, sum_product, MergeSums);
}

void SumChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                         ConstNumbers x, ConstNumbers dy, double* partials, double* sum_dy,
                         double* sum_product) {
  if (rows.num_chunks > 0) {
    SumChunkGradients(pool, rows, norm, x, {0, rows.num_chunks, dy}, partials);
  }
  MergeChunkGradients(pool, rows, partials, sum_dy, sum_product);
}

// From the last chunk to the first: see ForEachChunkBackwards.
void CombineChunkGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           ConstNumbers x, const GradientChunks& chunks, const float* offset,
                           const float* slope, ConstNumbers other, Numbers dx) {
  const size_t first_row = ChunkAt(rows, chunks.begin).begin;
  pool.Run(chunks.end - chunks.begin, [&](size_t index, size_t /*thread*/) {
    const Chunk chunk = ChunkAt(rows, chunks.end - 1 - index);
    const size_t first = chunk.begin * rows.channels;
    const size_t statistic = chunk.part * rows.channels;
    CombineRowGradients(OfPart(norm, rows, chunk.part), chunk.count, rows.channels, x + first,
                        chunks.dy + (chunk.begin - first_row) * rows.channels, offset + statistic,
                        slope + statistic, other.data == nullptr ? other : other + first,
                        dx + first);
  });
}

void CombineChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                             ConstNumbers x, ConstNumbers dy, const float* offset,
                             const float* slope, ConstNumbers other, Numbers dx) {
  if (rows.num_chunks == 0) return;
  CombineChunkGradients(pool, rows, norm, x, {0, rows.num_chunks, dy}, offset, slope, other, dx);
}

void ScaleChannelGradients(ThreadPool& pool, const ChannelRows& rows, const ChannelNorm& norm,
                           ConstNumbers x, ConstNumbers dy, Numbers dx) {
  ForEachChunkBackwards(pool, rows, [&](const Chunk& chunk) {
    const size_t first = chunk.begin * rows.channels;
    ScaleRowGradients(OfPart(norm, rows, chunk.part), chunk.count, rows.channels, x + first,
                      dy + first, dx + first);
  });
}

}  // namespace thimble
