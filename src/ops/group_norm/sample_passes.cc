#include "thimble/ops/group_norm/sample_passes.h"

#include <algorithm>

#include "thimble/device/cpu/parallel_elements.h"

namespace thimble {
namespace {

// Enough to keep 32 threads busy with one sample.
constexpr size_t kMaxChunks = 32;

}  // namespace

SampleChunks::SampleChunks(const Shape& x)
    : samples(static_cast<size_t>(x[0])), channels(static_cast<size_t>(x[x.rank() - 1])) {
  const size_t sample_channels = samples * channels;
  rows = sample_channels == 0 ? 0 : static_cast<size_t>(x.elements()) / sample_channels;
  const size_t by_size = kElementsPerChunk / std::max<size_t>(1, channels);
  const size_t by_number = (rows + kMaxChunks - 1) / kMaxChunks;
  rows_per_chunk = std::max<size_t>({1, by_size, by_number});
  chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
}

size_t SampleChunks::RowsOf(size_t chunk) const {
  return std::min(rows_per_chunk, rows - chunk * rows_per_chunk);
}

void MeasureChunk(const SampleChunks& cut, size_t sample, size_t chunk, ConstNumbers x,
                  double* mean, double* squares) {
  MeasureRows(x + cut.ElementOf(sample, chunk), cut.RowsOf(chunk), cut.channels, mean, squares);
}

void NormalizeChunk(const SampleChunks& cut, size_t sample, size_t chunk, const ChannelNorm& norm,
                    ConstNumbers x, Numbers y) {
  const size_t first = cut.ElementOf(sample, chunk);
  NormalizeRows(norm, cut.RowsOf(chunk), cut.channels, x + first, y + first);
}

void SumChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                       const ChannelNorm& norm, ConstNumbers x, ConstNumbers dy, double* sum_dy,
                       double* sum_product) {
  const size_t first = cut.ElementOf(sample, chunk);
  SumRowGradients(norm, cut.RowsOf(chunk), cut.channels, x + first, dy + first, sum_dy,
                  sum_product);
}

void CombineChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                           const ChannelNorm& norm, const SampleSlopes& slopes, ConstNumbers x,
                           ConstNumbers dy, ConstNumbers other, Numbers dx) {
  const size_t first = cut.ElementOf(sample, chunk);
  CombineSampleRows(norm, cut.RowsOf(chunk), cut.channels, x + first, dy + first, slopes.offset,
                    slopes.slope, other.data == nullptr ? other : other + first, dx + first);
}

}  // namespace thimble
