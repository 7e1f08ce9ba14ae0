// Channels are processed in groups of up to eight vectors. A group's sums stay in registers over
// all its rows; if a group is a whole row, memory is read sequentially, which suits prefetchers
// best. Sums are kept in floats inside a block of rows and in doubles across blocks.
#include "thimble/ops/batch_norm/row_passes.h"

#include <algorithm>
#include <limits>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/batch_norm/row_passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Sums turn into doubles after a block of rows. 128 rows of 64 channels are 32 KiB.
constexpr size_t kRowsPerBlock = 128;

// Maximum vectors of channels processed together: the 128 channels of a wrn-28-2's last blocks. Two
// sums for each are 16 registers of the 32 that the widest target has.
constexpr size_t kMaxVectors = 8;

// Maximum length of a chain of float additions: short chains lose less to rounding.
constexpr size_t kRowsPerChain = 32;

// kVectors adjacent vectors of channels, starting at a given channel.
template <class Tag, size_t kVectors>
struct Group {
  // Independent sums per channel. With few vectors, additions would wait for each other.
  static constexpr size_t kChains = kVectors < 4 ? 4 / kVectors : 1;
  using Vector = hn::Vec<Tag>;

  size_t channel;

  HWY_INLINE static size_t Lanes() { return hn::Lanes(Tag()); }
  HWY_INLINE static size_t num_channels() { return kVectors * Lanes(); }
  // The channels of this group in an array of all.
  HWY_INLINE void Load(const float* all, Vector* vectors) const {
    for (size_t v = 0; v < kVectors; ++v) {
      vectors[v] = hn::LoadU(Tag(), all + channel + v * Lanes());
    }
  }
};

// Calls body(group) so that the groups cover all channels, in order.
template <class Body>
HWY_INLINE void ForEachGroup(size_t channels, const Body& body) {
  const size_t lanes = hn::Lanes(WideTag());
  size_t c = 0;
  for (; c + 8 * lanes <= channels; c += 8 * lanes) body(Group<WideTag, 8>{c});
  for (; c + 4 * lanes <= channels; c += 4 * lanes) body(Group<WideTag, 4>{c});
  for (; c + 2 * lanes <= channels; c += 2 * lanes) body(Group<WideTag, 2>{c});
  for (; c + lanes <= channels; c += lanes) body(Group<WideTag, 1>{c});
  for (; c < channels; ++c) body(Group<OneLaneTag, 1>{c});
}

// Calls body(begin, count) for each block of rows.
template <class Body>
HWY_INLINE void ForEachBlock(size_t rows, const Body& body) {
  for (size_t begin = 0; begin < rows; begin += kRowsPerBlock) {
    body(begin, std::min(kRowsPerBlock, rows - begin));
  }
}

// Calls body(v, i) for each vector of the group in each row; i counts from the first row's first
// channel.
template <class Tag, size_t kVectors, class Body>
HWY_INLINE void ForEachElement(Group<Tag, kVectors> group, size_t rows, size_t channels,
                               const Body& body) {
  const size_t lanes = hn::Lanes(Tag());
  for (size_t row = 0, i = group.channel; row < rows; ++row, i += channels) {
    for (size_t v = 0; v < kVectors; ++v) body(v, i + v * lanes);
  }
}

// Two sums of every channel of a group over `count` rows of a block, into arrays of its channels.
// body(v, i, first, second) adds the contribution of the vector at i.
template <class Tag, size_t kVectors, class Body>
HWY_INLINE void SumBlock(Group<Tag, kVectors> group, size_t count, size_t channels, float* first,
                         float* second, const Body& body) {
  constexpr size_t kChains = Group<Tag, kVectors>::kChains;
  const Tag tag;
  const size_t lanes = hn::Lanes(tag);
  hn::Vec<Tag> total[2][kVectors];
  for (size_t v = 0; v < kVectors; ++v) total[0][v] = total[1][v] = hn::Zero(tag);
  for (size_t row = 0; row < count;) {
    const size_t end = std::min(count, row + kChains * kRowsPerChain);
    hn::Vec<Tag> sums[2][kChains][kVectors];
    for (size_t k = 0; k < kChains; ++k) {
      for (size_t v = 0; v < kVectors; ++v) sums[0][k][v] = sums[1][k][v] = hn::Zero(tag);
    }
    const auto add_row = [&](size_t r, size_t k) HWY_ATTR {
      const size_t i = r * channels + group.channel;
      for (size_t v = 0; v < kVectors; ++v) body(v, i + v * lanes, sums[0][k][v], sums[1][k][v]);
    };
    for (; row + kChains <= end; row += kChains) {
      for (size_t k = 0; k < kChains; ++k) add_row(row + k, k);
    }
    for (; row < end; ++row) add_row(row, 0);
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t k = 0; k < kChains; ++k) {
        total[0][v] = hn::Add(total[0][v], sums[0][k][v]);
        total[1][v] = hn::Add(total[1][v], sums[1][k][v]);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    hn::StoreU(total[0][v], tag, first + v * lanes);
    hn::StoreU(total[1][v], tag, second + v * lanes);
  }
}

// The lanes of the widest group.
constexpr size_t kMaxGroupChannels = 16 * kMaxVectors;

// Sums of (x - centre) and of its square over the rows of a block. centre, sums, square_sums: of
// the group's channels.
template <class Tag, size_t kVectors>
HWY_INLINE void SumCentred(Group<Tag, kVectors> group, const float* x, size_t count,
                           size_t channels, const float* centre, float* sums, float* square_sums) {
  hn::Vec<Tag> middle[kVectors];
  Group<Tag, kVectors>{0}.Load(centre, middle);
  SumBlock(group, count, channels, sums, square_sums,
           [&](size_t v, size_t i, auto& sum, auto& square) HWY_ATTR {
             const auto distance = hn::Sub(hn::LoadU(Tag(), x + i), middle[v]);
             sum = hn::Add(sum, distance);
             square = hn::MulAdd(distance, distance, square);
           });
}

// Merges one block of x, which begins at row `begin`, into the mean and squares of the rows before
// it by the parallel-variance formula. The block is centred on their mean, which keeps the sums
// small even for a large mean. The first block is centred on the mean of its first rows, which is
// always within two standard deviations of the block's own mean.
template <class Tag, size_t kVectors>
HWY_INLINE void MeasureBlock(Group<Tag, kVectors> group, const float* block, size_t begin,
                             size_t count, size_t channels, double* mean, double* squares) {
  HWY_ALIGN float centre[kMaxGroupChannels];
  HWY_ALIGN float sums[kMaxGroupChannels];
  HWY_ALIGN float square_sums[kMaxGroupChannels];
  const size_t width = group.num_channels();
  const double inverse = 1.0 / static_cast<double>(count);
  mean += group.channel;
  squares += group.channel;
  if (begin == 0) {
    const float* row = block + group.channel;
    const size_t few = std::min(count, kRowsPerChain);
    SumCentred(group, block, few, channels, row, sums, square_sums);
    for (size_t c = 0; c < width; ++c) {
      mean[c] = row[c] + sums[c] / static_cast<float>(few);
      squares[c] = 0;
    }
  }
  for (size_t c = 0; c < width; ++c) centre[c] = static_cast<float>(mean[c]);
  SumCentred(group, block, count, channels, centre, sums, square_sums);
  const double share = static_cast<double>(count) / static_cast<double>(begin + count);
  for (size_t c = 0; c < width; ++c) {
    const double sum = sums[c];
    const double distance = (centre[c] - mean[c]) + sum * inverse;
    mean[c] += distance * share;
    squares[c] += (square_sums[c] - sum * sum * inverse) +
                  distance * distance * share * static_cast<double>(begin);
  }
}

// mean, squares: (C), overwritten: the mean of the rows and the sum of squared distances from it.
void MeasureRows(const float* x, size_t rows, size_t channels, double* mean, double* squares) {
  ForEachBlock(rows, [=](size_t begin, size_t count) HWY_ATTR {
    const float* block = x + begin * channels;
    ForEachGroup(channels, [=](auto group) HWY_ATTR {
      MeasureBlock(group, block, begin, count, channels, mean, squares);
    });
  });
}

// The constants of a group, and the formulas that every pass shares: what forward computes and what
// backward compares with zero is bit-identical.
template <class Tag, size_t kVectors>
struct GroupNorm {
  using Vector = hn::Vec<Tag>;
  Vector mean[kVectors];
  Vector scale[kVectors];
  Vector shift[kVectors];
  // Values whose n(x) is at most this become zero: 0 with ReLU, otherwise NaN, for which no
  // comparison holds. A template parameter instead would double the code.
  Vector bound;

  HWY_INLINE GroupNorm(Group<Tag, kVectors> group, const ChannelNorm& norm)
      : bound(hn::Set(Tag(), norm.relu ? 0.0f : std::numeric_limits<float>::quiet_NaN())) {
    group.Load(norm.mean, mean);
    group.Load(norm.scale, scale);
    group.Load(norm.shift, shift);
  }
  // x - mean.
  HWY_INLINE Vector Centred(size_t v, const float* x) const {
    return hn::Sub(hn::LoadU(Tag(), x), mean[v]);
  }
  // n(x).
  HWY_INLINE Vector Normalized(size_t v, Vector centred) const {
    return hn::MulAdd(centred, scale[v], shift[v]);
  }
  // `value`, an output or its gradient, after ReLU. Selects by comparison instead of Max, so that
  // NaN passes through on every target.
  HWY_INLINE Vector Gated(Vector normalized, Vector value) const {
    return hn::IfThenZeroElse(hn::Le(normalized, bound), value);
  }
  HWY_INLINE Vector Gradient(size_t v, Vector centred, const float* dy) const {
    return Gated(Normalized(v, centred), hn::LoadU(Tag(), dy));
  }
};

// Calls body(group, its constants, first row, number of rows) for each group of each block.
template <class Body>
HWY_INLINE void ForEachGroupOfBlocks(const ChannelNorm& norm, size_t rows, size_t channels,
                                     const Body& body) {
  ForEachBlock(rows, [&](size_t begin, size_t count) HWY_ATTR {
    ForEachGroup(channels,
                 [&](auto group) HWY_ATTR { body(group, GroupNorm(group, norm), begin, count); });
  });
}

void NormalizeRows(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                   float* y) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [=]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, const auto& constants,
                                      size_t begin, size_t count) HWY_ATTR {
        const float* from = x + begin * channels;
        float* to = y + begin * channels;
        ForEachElement(group, count, channels, [&](size_t v, size_t i) HWY_ATTR {
          const auto normalized = constants.Normalized(v, constants.Centred(v, from + i));
          hn::StoreU(constants.Gated(normalized, normalized), Tag(), to + i);
        });
      });
}

// sum_dy, sum_product: (C), overwritten: sums of dy and of dy * (x - mean).
void SumRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                     const float* dy, double* sum_dy, double* sum_product) {
  std::fill_n(sum_dy, channels, 0.0);
  std::fill_n(sum_product, channels, 0.0);
  ForEachGroupOfBlocks(norm, rows, channels,
                       [=](auto group, const auto& constants, size_t begin, size_t count) HWY_ATTR {
                         HWY_ALIGN float sums[kMaxGroupChannels];
                         HWY_ALIGN float products[kMaxGroupChannels];
                         const float* block_x = x + begin * channels;
                         const float* block_dy = dy + begin * channels;
                         SumBlock(group, count, channels, sums, products,
                                  [&](size_t v, size_t i, auto& sum, auto& product) HWY_ATTR {
                                    const auto centred = constants.Centred(v, block_x + i);
                                    const auto gradient =
                                        constants.Gradient(v, centred, block_dy + i);
                                    sum = hn::Add(sum, gradient);
                                    product = hn::MulAdd(gradient, centred, product);
                                  });
                         for (size_t c = 0; c < group.num_channels(); ++c) {
                           sum_dy[group.channel + c] += sums[c];
                           sum_product[group.channel + c] += products[c];
                         }
                       });
}

// dx = combine(scale, dy, offset, x - mean, slope), plus `other` if kAdd.
template <bool kAdd, class Combine>
HWY_INLINE void CombineRowsWith(const ChannelNorm& norm, size_t rows, size_t channels,
                                const float* x, const float* dy, const float* offset,
                                const float* slope, const float* other, float* dx,
                                const Combine& combine) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [&]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, const auto& constants,
                                      size_t begin, size_t count) HWY_ATTR {
        const size_t first = begin * channels;
        hn::Vec<Tag> constant[kVectors];
        hn::Vec<Tag> steepness[kVectors];
        group.Load(offset, constant);
        group.Load(slope, steepness);
        ForEachElement(group, count, channels, [&](size_t v, size_t i) HWY_ATTR {
          const auto centred = constants.Centred(v, x + first + i);
          const auto gradient = constants.Gradient(v, centred, dy + first + i);
          auto result = combine(constants.scale[v], gradient, constant[v], centred, steepness[v]);
          if constexpr (kAdd) result = hn::Add(hn::LoadU(Tag(), other + first + i), result);
          hn::StoreU(result, Tag(), dx + first + i);
        });
      });
}

// The same, plus `other` unless it is null.
template <class Combine>
HWY_INLINE void CombineRows(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                            const float* dy, const float* offset, const float* slope,
                            const float* other, float* dx, const Combine& combine) {
  if (other != nullptr) {
    CombineRowsWith<true>(norm, rows, channels, x, dy, offset, slope, other, dx, combine);
  } else {
    CombineRowsWith<false>(norm, rows, channels, x, dy, offset, slope, other, dx, combine);
  }
}

// dx = scale * (dy - offset - (x - mean) * slope), plus `other` unless it is null.
void CombineRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                         const float* dy, const float* offset, const float* slope,
                         const float* other, float* dx) {
  CombineRows(norm, rows, channels, x, dy, offset, slope, other, dx,
              [](auto scale, auto gradient, auto constant, auto centred, auto steepness) HWY_ATTR {
                const auto direct = hn::Sub(gradient, constant);
                return hn::Mul(scale, hn::NegMulAdd(centred, steepness, direct));
              });
}

// dx = scale * dy - offset - (x - mean) * slope, plus `other` unless it is null.
void CombineSampleRows(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                       const float* dy, const float* offset, const float* slope, const float* other,
                       float* dx) {
  CombineRows(norm, rows, channels, x, dy, offset, slope, other, dx,
              [](auto scale, auto gradient, auto constant, auto centred, auto steepness) HWY_ATTR {
                const auto direct = hn::MulSub(scale, gradient, constant);
                return hn::NegMulAdd(centred, steepness, direct);
              });
}

// dx = scale * dy. Without ReLU nothing depends on x, and x is not read.
void ScaleRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                       const float* dy, float* dx) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [=]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, const auto& constants,
                                      size_t begin, size_t count) HWY_ATTR {
        const size_t first = begin * channels;
        ForEachElement(group, count, channels, [&](size_t v, size_t i) HWY_ATTR {
          const auto gradient =
              norm.relu ? constants.Gradient(v, constants.Centred(v, x + first + i), dy + first + i)
                        : hn::LoadU(Tag(), dy + first + i);
          hn::StoreU(hn::Mul(constants.scale[v], gradient), Tag(), dx + first + i);
        });
      });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(MeasureRows);
HWY_EXPORT(NormalizeRows);
HWY_EXPORT(SumRowGradients);
HWY_EXPORT(CombineRowGradients);
HWY_EXPORT(CombineSampleRows);
HWY_EXPORT(ScaleRowGradients);

void MeasureRows(const float* x, size_t rows, size_t channels, double* mean, double* squares) {
  HWY_DYNAMIC_DISPATCH(MeasureRows)(x, rows, channels, mean, squares);
}

void NormalizeRows(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                   float* y) {
  HWY_DYNAMIC_DISPATCH(NormalizeRows)(norm, rows, channels, x, y);
}

void SumRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                     const float* dy, double* sum_dy, double* sum_product) {
  HWY_DYNAMIC_DISPATCH(SumRowGradients)(norm, rows, channels, x, dy, sum_dy, sum_product);
}

void CombineRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                         const float* dy, const float* offset, const float* slope,
                         const float* other, float* dx) {
  HWY_DYNAMIC_DISPATCH(CombineRowGradients)(norm, rows, channels, x, dy, offset, slope, other, dx);
}

void CombineSampleRows(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                       const float* dy, const float* offset, const float* slope, const float* other,
                       float* dx) {
  HWY_DYNAMIC_DISPATCH(CombineSampleRows)(norm, rows, channels, x, dy, offset, slope, other, dx);
}

void ScaleRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, const float* x,
                       const float* dy, float* dx) {
  HWY_DYNAMIC_DISPATCH(ScaleRowGradients)(norm, rows, channels, x, dy, dx);
}

}  // namespace thimble
#endif  // HWY_ONCE
