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

  // Rows whose numbers are converted together, and summed in floats.
  static constexpr size_t kRowsAtOnce = kChains * kRowsPerChain;

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

// Some rows of a group's channels as floats: the tensor itself if it stores f32, otherwise a copy.
template <class Float>
struct RowPiece {
  Float* data;
  size_t stride;  // floats from one row to the next

  HWY_INLINE Float* At(size_t row, size_t lane) const { return data + row * stride + lane; }
};
using InRows = RowPiece<const float>;
using OutRows = RowPiece<float>;

// The floats of the largest piece.
constexpr size_t kMaxPieceFloats = kRowsPerChain * 16 * kMaxVectors;

// Piece of `count` rows from `row` on of a matrix with this many channels.
struct Piece {
  size_t row;
  size_t count;
  size_t channels;

  template <class Group>
  HWY_INLINE InRows Read(Group group, ConstNumbers from, float* copy) const {
    const ConstNumbers first = from + (row * channels + group.channel);
    const size_t width = group.num_channels();
    if (from.is_float()) return {first.floats(), channels};
    DecodeNumberRows(first, {count, width, channels, width}, copy);
    return {copy, width};
  }
  // Where to write results; Write then stores them. (`copy` may be that of an input that is read
  // element by element.)
  template <class Group>
  HWY_INLINE OutRows Room(Group group, Numbers to, float* copy) const {
    if (!to.is_float()) return {copy, group.num_channels()};
    return {(to + (row * channels + group.channel)).floats(), channels};
  }
  template <class Group>
  HWY_INLINE void Write(Group group, OutRows room, Numbers to) const {
    if (to.is_float()) return;
    const size_t width = group.num_channels();
    EncodeNumberRows(room.data, {count, width, width, channels},
                     to + (row * channels + group.channel));
  }
};

// Calls body(piece) for the pieces of rows [begin, begin + count).
template <class Group, class Body>
HWY_INLINE void ForEachPiece(Group /*group*/, size_t begin, size_t count, size_t channels,
                             const Body& body) {
  for (size_t row = 0; row < count; row += Group::kRowsAtOnce) {
    body(Piece{begin + row, std::min(Group::kRowsAtOnce, count - row), channels});
  }
}

// Calls body(row, v, lane) for each vector of the group in each row of a piece.
template <class Tag, size_t kVectors, class Body>
HWY_INLINE void ForEachElement(Group<Tag, kVectors> group, size_t rows, const Body& body) {
  for (size_t row = 0; row < rows; ++row) {
    for (size_t v = 0; v < kVectors; ++v) body(row, v, v * group.Lanes());
  }
}

// Two sums of every channel of a group over `count` rows from `begin` on, into arrays of its
// channels. read(piece) returns what body(read, row, v, lane, first, second) needs, which adds the
// contribution of a vector.
template <class Tag, size_t kVectors, class Read, class Body>
HWY_INLINE void SumBlock(Group<Tag, kVectors> group, size_t begin, size_t count, size_t channels,
                         float* first, float* second, const Read& read, const Body& body) {
  constexpr size_t kChains = Group<Tag, kVectors>::kChains;
  const Tag tag;
  const size_t lanes = hn::Lanes(tag);
  hn::Vec<Tag> total[2][kVectors];
  for (size_t v = 0; v < kVectors; ++v) total[0][v] = total[1][v] = hn::Zero(tag);
  ForEachPiece(group, begin, count, channels, [&](const Piece& piece) HWY_ATTR {
    const auto rows = read(piece);
    hn::Vec<Tag> sums[2][kChains][kVectors];
    for (size_t k = 0; k < kChains; ++k) {
      for (size_t v = 0; v < kVectors; ++v) sums[0][k][v] = sums[1][k][v] = hn::Zero(tag);
    }
    const auto add_row = [&](size_t row, size_t k) HWY_ATTR {
      for (size_t v = 0; v < kVectors; ++v) {
        body(rows, row, v, v * lanes, sums[0][k][v], sums[1][k][v]);
      }
    };
    size_t row = 0;
    for (; row + kChains <= piece.count; row += kChains) {
      for (size_t k = 0; k < kChains; ++k) add_row(row + k, k);
    }
    for (; row < piece.count; ++row) add_row(row, 0);
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t k = 0; k < kChains; ++k) {
        total[0][v] = hn::Add(total[0][v], sums[0][k][v]);
        total[1][v] = hn::Add(total[1][v], sums[1][k][v]);
      }
    }
  });
  for (size_t v = 0; v < kVectors; ++v) {
    hn::StoreU(total[0][v], tag, first + v * lanes);
    hn::StoreU(total[1][v], tag, second + v * lanes);
  }
}

// The lanes of the widest group.
constexpr size_t kMaxGroupChannels = 16 * kMaxVectors;

// Sums of (x - centre) and of its square over `count` rows. centre, sums, square_sums: of the
// group's channels.
template <class Tag, size_t kVectors>
HWY_INLINE void SumCentred(Group<Tag, kVectors> group, ConstNumbers x, size_t begin, size_t count,
                           size_t channels, const float* centre, float* sums, float* square_sums) {
  HWY_ALIGN float copy[kMaxPieceFloats];
  hn::Vec<Tag> middle[kVectors];
  Group<Tag, kVectors>{0}.Load(centre, middle);
  SumBlock(
      group, begin, count, channels, sums, square_sums,
      [&](const Piece& piece) HWY_ATTR { return piece.Read(group, x, copy); },
      [&](InRows rows, size_t row, size_t v, size_t lane, auto& sum, auto& square) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(Tag(), rows.At(row, lane)), middle[v]);
        sum = hn::Add(sum, distance);
        square = hn::MulAdd(distance, distance, square);
      });
}

// Merges one block of x, which begins at row `begin`, into the mean and squares of the rows before
// it by the parallel-variance formula. The block is centred on their mean, which keeps the sums
// small even for a large mean. The first block is centred on the mean of its first rows, which is
// always within two standard deviations of the block's own mean.
template <class Tag, size_t kVectors>
HWY_INLINE void MeasureBlock(Group<Tag, kVectors> group, ConstNumbers x, size_t begin, size_t count,
                             size_t channels, double* mean, double* squares) {
  HWY_ALIGN float centre[kMaxGroupChannels];
  HWY_ALIGN float sums[kMaxGroupChannels];
  HWY_ALIGN float square_sums[kMaxGroupChannels];
  const size_t width = group.num_channels();
  const double inverse = 1.0 / static_cast<double>(count);
  mean += group.channel;
  squares += group.channel;
  if (begin == 0) {
    const InRows first_row = Piece{0, 1, channels}.Read(group, x, centre);
    for (size_t c = 0; c < width; ++c) centre[c] = first_row.data[c];
    const size_t few = std::min(count, kRowsPerChain);
    SumCentred(group, x, 0, few, channels, centre, sums, square_sums);
    for (size_t c = 0; c < width; ++c) {
      mean[c] = centre[c] + sums[c] / static_cast<float>(few);
      squares[c] = 0;
    }
  }
  for (size_t c = 0; c < width; ++c) centre[c] = static_cast<float>(mean[c]);
  SumCentred(group, x, begin, count, channels, centre, sums, square_sums);
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
void MeasureRows(ConstNumbers x, size_t rows, size_t channels, double* mean, double* squares) {
  ForEachBlock(rows, [=](size_t begin, size_t count) HWY_ATTR {
    ForEachGroup(channels, [=](auto group) HWY_ATTR {
      MeasureBlock(group, x, begin, count, channels, mean, squares);
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

void NormalizeRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                   Numbers y) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [=]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, auto constants, size_t begin,
                                      size_t count) HWY_ATTR {
        HWY_ALIGN float copy[kMaxPieceFloats];
        ForEachPiece(group, begin, count, channels, [&](const Piece& piece) HWY_ATTR {
          const InRows from = piece.Read(group, x, copy);
          const OutRows to = piece.Room(group, y, copy);
          ForEachElement(group, piece.count, [&](size_t row, size_t v, size_t lane) HWY_ATTR {
            const auto normalized =
                constants.Normalized(v, constants.Centred(v, from.At(row, lane)));
            hn::StoreU(constants.Gated(normalized, normalized), Tag(), to.At(row, lane));
          });
          piece.Write(group, to, y);
        });
      });
}

// x and dy of a piece.
struct GradientRows {
  InRows x;
  InRows dy;
};

// sum_dy, sum_product: (C), overwritten: sums of dy and of dy * (x - mean).
void SumRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                     ConstNumbers dy, double* sum_dy, double* sum_product) {
  std::fill_n(sum_dy, channels, 0.0);
  std::fill_n(sum_product, channels, 0.0);
  ForEachGroupOfBlocks(
      norm, rows, channels, [=](auto group, auto constants, size_t begin, size_t count) HWY_ATTR {
        HWY_ALIGN float sums[kMaxGroupChannels];
        HWY_ALIGN float products[kMaxGroupChannels];
        HWY_ALIGN float x_copy[kMaxPieceFloats];
        HWY_ALIGN float dy_copy[kMaxPieceFloats];
        SumBlock(
            group, begin, count, channels, sums, products,
            [&](const Piece& piece) HWY_ATTR {
              return GradientRows{piece.Read(group, x, x_copy), piece.Read(group, dy, dy_copy)};
            },
            [&](const GradientRows& from, size_t row, size_t v, size_t lane, auto& sum,
                auto& product) HWY_ATTR {
              const auto centred = constants.Centred(v, from.x.At(row, lane));
              const auto gradient = constants.Gradient(v, centred, from.dy.At(row, lane));
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
                                ConstNumbers x, ConstNumbers dy, const float* offset,
                                const float* slope, ConstNumbers other, Numbers dx,
                                const Combine& combine) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [&]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, auto constants, size_t begin,
                                      size_t count) HWY_ATTR {
        HWY_ALIGN float x_copy[kMaxPieceFloats];
        HWY_ALIGN float dy_copy[kMaxPieceFloats];
        HWY_ALIGN float other_copy[kMaxPieceFloats];
        hn::Vec<Tag> constant[kVectors];
        hn::Vec<Tag> steepness[kVectors];
        group.Load(offset, constant);
        group.Load(slope, steepness);
        ForEachPiece(group, begin, count, channels, [&](const Piece& piece) HWY_ATTR {
          const InRows from_x = piece.Read(group, x, x_copy);
          const InRows from_dy = piece.Read(group, dy, dy_copy);
          const InRows from_other = kAdd ? piece.Read(group, other, other_copy) : from_x;
          const OutRows to = piece.Room(group, dx, x_copy);
          ForEachElement(group, piece.count, [&](size_t row, size_t v, size_t lane) HWY_ATTR {
            const auto centred = constants.Centred(v, from_x.At(row, lane));
            const auto gradient = constants.Gradient(v, centred, from_dy.At(row, lane));
            auto result = combine(constants.scale[v], gradient, constant[v], centred, steepness[v]);
            if constexpr (kAdd) {
              result = hn::Add(hn::LoadU(Tag(), from_other.At(row, lane)), result);
            }
            hn::StoreU(result, Tag(), to.At(row, lane));
          });
          piece.Write(group, to, dx);
        });
      });
}

// The same, plus `other` unless it is null.
template <class Combine>
HWY_INLINE void CombineRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                            ConstNumbers dy, const float* offset, const float* slope,
                            ConstNumbers other, Numbers dx, const Combine& combine) {
  if (other.data != nullptr) {
    CombineRowsWith<true>(norm, rows, channels, x, dy, offset, slope, other, dx, combine);
  } else {
    CombineRowsWith<false>(norm, rows, channels, x, dy, offset, slope, other, dx, combine);
  }
}

// dx = scale * (dy - offset - (x - mean) * slope), plus `other` unless it is null.
void CombineRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                         ConstNumbers dy, const float* offset, const float* slope,
                         ConstNumbers other, Numbers dx) {
  CombineRows(norm, rows, channels, x, dy, offset, slope, other, dx,
              [](auto scale, auto gradient, auto constant, auto centred, auto steepness) HWY_ATTR {
                const auto direct = hn::Sub(gradient, constant);
                return hn::Mul(scale, hn::NegMulAdd(centred, steepness, direct));
              });
}

// dx = scale * dy - offset - (x - mean) * slope, plus `other` unless it is null.
void CombineSampleRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, const float* offset, const float* slope, ConstNumbers other,
                       Numbers dx) {
  CombineRows(norm, rows, channels, x, dy, offset, slope, other, dx,
              [](auto scale, auto gradient, auto constant, auto centred, auto steepness) HWY_ATTR {
                const auto direct = hn::MulSub(scale, gradient, constant);
                return hn::NegMulAdd(centred, steepness, direct);
              });
}

// dx = scale * dy. Without ReLU nothing depends on x, and x is not read.
void ScaleRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, Numbers dx) {
  ForEachGroupOfBlocks(
      norm, rows, channels,
      [=]<class Tag, size_t kVectors>(Group<Tag, kVectors> group, auto constants, size_t begin,
                                      size_t count) HWY_ATTR {
        HWY_ALIGN float x_copy[kMaxPieceFloats];
        HWY_ALIGN float dy_copy[kMaxPieceFloats];
        ForEachPiece(group, begin, count, channels, [&](const Piece& piece) HWY_ATTR {
          const InRows from_dy = piece.Read(group, dy, dy_copy);
          const InRows from_x = norm.relu ? piece.Read(group, x, x_copy) : from_dy;
          const OutRows to = piece.Room(group, dx, dy_copy);
          ForEachElement(group, piece.count, [&](size_t row, size_t v, size_t lane) HWY_ATTR {
            const float* from = from_dy.At(row, lane);
            const auto gradient =
                norm.relu ? constants.Gradient(v, constants.Centred(v, from_x.At(row, lane)), from)
                          : hn::LoadU(Tag(), from);
            hn::StoreU(hn::Mul(constants.scale[v], gradient), Tag(), to.At(row, lane));
          });
          piece.Write(group, to, dx);
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

void MeasureRows(ConstNumbers x, size_t rows, size_t channels, double* mean, double* squares) {
  HWY_DYNAMIC_DISPATCH(MeasureRows)(x, rows, channels, mean, squares);
}

void NormalizeRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                   Numbers y) {
  HWY_DYNAMIC_DISPATCH(NormalizeRows)(norm, rows, channels, x, y);
}

void SumRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                     ConstNumbers dy, double* sum_dy, double* sum_product) {
  HWY_DYNAMIC_DISPATCH(SumRowGradients)(norm, rows, channels, x, dy, sum_dy, sum_product);
}

void CombineRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                         ConstNumbers dy, const float* offset, const float* slope,
                         ConstNumbers other, Numbers dx) {
  HWY_DYNAMIC_DISPATCH(CombineRowGradients)(norm, rows, channels, x, dy, offset, slope, other, dx);
}

void CombineSampleRows(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, const float* offset, const float* slope, ConstNumbers other,
                       Numbers dx) {
  HWY_DYNAMIC_DISPATCH(CombineSampleRows)(norm, rows, channels, x, dy, offset, slope, other, dx);
}

void ScaleRowGradients(const ChannelNorm& norm, size_t rows, size_t channels, ConstNumbers x,
                       ConstNumbers dy, Numbers dx) {
  HWY_DYNAMIC_DISPATCH(ScaleRowGradients)(norm, rows, channels, x, dy, dx);
}

}  // namespace thimble
#endif  // HWY_ONCE
