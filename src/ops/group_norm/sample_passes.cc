#include "thimble/ops/group_norm/sample_passes.h"

#include <algorithm>

#include "thimble/device/cpu/parallel_elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/group_norm/sample_passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/ops/batch_norm/channel_passes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <bool kRelu, bool kAdd>
HWY_INLINE void CombineSampleRowsWith(const ChannelNorm& norm, const SampleSlopes& slopes,
                                      size_t rows, size_t channels, const float* x, const float* dy,
                                      const float* other, float* dx) {
  ForEachGroupOfBlocks<kRelu>(
      norm, rows, channels,
      [=]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, const auto& constants,
                                      size_t begin, size_t count) HWY_ATTR {
        const size_t first = begin * channels;
        hn::Vec<Tag> offset[kVectors];
        hn::Vec<Tag> slope[kVectors];
        group.Load(slopes.offset, offset);
        group.Load(slopes.slope, slope);
        ForEachElement(group, count, channels, [&](size_t v, size_t i) HWY_ATTR {
          const auto centred = constants.Centred(v, x + first + i);
          const auto gradient = constants.Gradient(v, centred, dy + first + i);
          const auto direct = hn::MulSub(constants.scale[v], gradient, offset[v]);
          auto result = hn::NegMulAdd(centred, slope[v], direct);
          if constexpr (kAdd) result = hn::Add(hn::LoadU(Tag(), other + first + i), result);
          hn::StoreU(result, Tag(), dx + first + i);
        });
      });
}

// dx = scale * dy - offset - (x - mean) * slope, plus other where there is one.
void CombineSampleRows(const ChannelNorm& norm, const SampleSlopes& slopes, size_t rows,
                       size_t channels, const float* x, const float* dy, const float* other,
                       float* dx) {
  const auto combine = [&](auto relu, auto add) HWY_ATTR {
    CombineSampleRowsWith<decltype(relu)::value, decltype(add)::value>(norm, slopes, rows, channels,
                                                                       x, dy, other, dx);
  };
  using Yes = std::true_type;
  using No = std::false_type;
  if (norm.relu) {
    other != nullptr ? combine(Yes(), Yes()) : combine(Yes(), No());
  } else {
    other != nullptr ? combine(No(), Yes()) : combine(No(), No());
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
namespace {

// Enough to keep 32 threads busy with one sample.
constexpr size_t kMaxChunks = 32;

}  // namespace

HWY_EXPORT(MeasureRows);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(SumRowGradients);
HWY_EXPORT(CombineSampleRows);

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

void MeasureChunk(const SampleChunks& cut, size_t sample, size_t chunk, const float* x,
                  double* mean, double* squares) {
  HWY_DYNAMIC_DISPATCH(MeasureRows)
  (x + cut.ElementOf(sample, chunk), cut.RowsOf(chunk), cut.channels, mean, squares);
}

void NormalizeChunk(const SampleChunks& cut, size_t sample, size_t chunk, const ChannelNorm& norm,
                    const float* x, float* y) {
  const size_t first = cut.ElementOf(sample, chunk);
  HWY_DYNAMIC_DISPATCH(NormalizeRows)(norm, cut.RowsOf(chunk), cut.channels, x + first, y + first);
}

void SumChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                       const ChannelNorm& norm, const float* x, const float* dy, double* sum_dy,
                       double* sum_product) {
  const size_t first = cut.ElementOf(sample, chunk);
  HWY_DYNAMIC_DISPATCH(SumRowGradients)
  (norm, cut.RowsOf(chunk), cut.channels, x + first, dy + first, sum_dy, sum_product);
}

void CombineChunkGradients(const SampleChunks& cut, size_t sample, size_t chunk,
                           const ChannelNorm& norm, const SampleSlopes& slopes, const float* x,
                           const float* dy, const float* other, float* dx) {
  const size_t first = cut.ElementOf(sample, chunk);
  HWY_DYNAMIC_DISPATCH(CombineSampleRows)
  (norm, slopes, cut.RowsOf(chunk), cut.channels, x + first, dy + first,
   other == nullptr ? nullptr : other + first, dx + first);
}

}  // namespace thimble
#endif  // HWY_ONCE
