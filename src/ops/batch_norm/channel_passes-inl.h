// The vector code of channel_passes: the work on the rows of one chunk. x, y, dy, dx: (rows, C).
//
// Rows go in blocks that fit the first-level cache, channels in vectors. Sums are kept in floats
// inside a block and in doubles across blocks.

// Highway's include guard: the file is read again for every target.
#if defined(THIMBLE_OPS_BATCH_NORM_CHANNEL_PASSES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_OPS_BATCH_NORM_CHANNEL_PASSES_INL_H_
#undef THIMBLE_OPS_BATCH_NORM_CHANNEL_PASSES_INL_H_
#else
#define THIMBLE_OPS_BATCH_NORM_CHANNEL_PASSES_INL_H_
#endif

#include <algorithm>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// 128 rows of 64 channels are 32 KiB.
constexpr size_t kRowsPerBlock = 128;

// Each block has four running sums, for every fourth row: short chains lose less to rounding, and
// one chain alone would wait for itself.
constexpr size_t kChains = 4;

// Calls body(tag, channel, first row, number of rows) for each vector of channels in each block.
template <class Body>
HWY_INLINE void ForEachBlock(size_t rows, size_t channels, const Body& body) {
  for (size_t begin = 0; begin < rows; begin += kRowsPerBlock) {
    const size_t count = std::min(kRowsPerBlock, rows - begin);
    ForEachVector(channels, [&](auto tag, size_t c) HWY_ATTR { body(tag, c, begin, count); });
  }
}

// The four running sums of two quantities.
template <class Tag>
struct ChainSums {
  hn::Vec<Tag> first[kChains];
  hn::Vec<Tag> second[kChains];

  explicit ChainSums(Tag tag) {
    for (size_t k = 0; k < kChains; ++k) first[k] = second[k] = hn::Zero(tag);
  }
  // Calls body(row, sum of the first quantity, of the second) for each row.
  template <class Body>
  HWY_INLINE void Run(size_t count, const Body& body) {
    size_t row = 0;
    for (; row + kChains <= count; row += kChains) {
      for (size_t k = 0; k < kChains; ++k) body(row + k, first[k], second[k]);
    }
    for (; row < count; ++row) body(row, first[row % kChains], second[row % kChains]);
  }
  static HWY_INLINE void Store(Tag tag, const hn::Vec<Tag>* sums, float* out) {
    hn::StoreU(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), tag, out);
  }
};

// Sum of (x - centre) and of its square over `count` rows, for one vector of channels. All but x:
// (lanes).
template <class Tag>
HWY_INLINE void SumCentred(Tag tag, const float* x, size_t count, size_t stride,
                           const float* centre, float* sums, float* square_sums) {
  const auto middle = hn::LoadU(tag, centre);
  ChainSums<Tag> chains(tag);
  chains.Run(count, [=](size_t row, auto& sum, auto& square) HWY_ATTR {
    const auto distance = hn::Sub(hn::LoadU(tag, x + row * stride), middle);
    sum = hn::Add(sum, distance);
    square = hn::MulAdd(distance, distance, square);
  });
  chains.Store(tag, chains.first, sums);
  chains.Store(tag, chains.second, square_sums);
}

// mean, squares: (C), assigned: the mean of the rows and the sum of squared distances from it. Each
// block is centred on the mean of the rows before it, which keeps the sums small however large the
// mean is, and merged by the parallel-variance formula. The first block finds its own centre first.
void MeasureRows(const float* x, size_t rows, size_t channels, double* mean, double* squares) {
  ForEachBlock(rows, channels, [=](auto tag, size_t c, size_t begin, size_t count) HWY_ATTR {
    HWY_ALIGN float centre[16];
    HWY_ALIGN float sums[16];
    HWY_ALIGN float square_sums[16];
    const size_t lanes = hn::Lanes(tag);
    const float* block = x + begin * channels + c;
    const double inverse = 1.0 / static_cast<double>(count);
    if (begin == 0) {
      SumCentred(tag, block, count, channels, block, sums, square_sums);
      for (size_t lane = 0; lane < lanes; ++lane) {
        mean[c + lane] = block[lane] + sums[lane] * inverse;
        squares[c + lane] = 0;
      }
    }
    for (size_t lane = 0; lane < lanes; ++lane) centre[lane] = static_cast<float>(mean[c + lane]);
    SumCentred(tag, block, count, channels, centre, sums, square_sums);
    const double share = static_cast<double>(count) / static_cast<double>(begin + count);
    for (size_t lane = 0; lane < lanes; ++lane) {
      const double sum = sums[lane];
      const double distance = (centre[lane] - mean[c + lane]) + sum * inverse;
      mean[c + lane] += distance * share;
      squares[c + lane] += (square_sums[lane] - sum * sum * inverse) +
                           distance * distance * share * static_cast<double>(begin);
    }
  });
}

// y = (x - mean) * scale + shift.
void NormalizeRows(const float* x, size_t rows, size_t channels, const float* mean,
                   const float* scale, const float* shift, float* y) {
  ForEachBlock(rows, channels, [=](auto tag, size_t c, size_t begin, size_t count) HWY_ATTR {
    const auto centre = hn::LoadU(tag, mean + c);
    const auto factor = hn::LoadU(tag, scale + c);
    const auto offset = hn::LoadU(tag, shift + c);
    for (size_t i = begin * channels + c; count > 0; --count, i += channels) {
      const auto centred = hn::Sub(hn::LoadU(tag, x + i), centre);
      hn::StoreU(hn::MulAdd(centred, factor, offset), tag, y + i);
    }
  });
}

// sum_dy, sum_product: (C), assigned: sums of dy and of dy * (x - mean).
void SumRowGradients(const float* x, const float* dy, size_t rows, size_t channels,
                     const float* mean, double* sum_dy, double* sum_product) {
  std::fill_n(sum_dy, channels, 0.0);
  std::fill_n(sum_product, channels, 0.0);
  ForEachBlock(rows, channels, [=](auto tag, size_t c, size_t begin, size_t count) HWY_ATTR {
    HWY_ALIGN float sums[16];
    HWY_ALIGN float products[16];
    const auto centre = hn::LoadU(tag, mean + c);
    const float* block_x = x + begin * channels + c;
    const float* block_dy = dy + begin * channels + c;
    ChainSums<decltype(tag)> chains(tag);
    chains.Run(count, [=](size_t row, auto& sum, auto& product) HWY_ATTR {
      const auto gradient = hn::LoadU(tag, block_dy + row * channels);
      const auto centred = hn::Sub(hn::LoadU(tag, block_x + row * channels), centre);
      sum = hn::Add(sum, gradient);
      product = hn::MulAdd(gradient, centred, product);
    });
    chains.Store(tag, chains.first, sums);
    chains.Store(tag, chains.second, products);
    for (size_t lane = 0; lane < hn::Lanes(tag); ++lane) {
      sum_dy[c + lane] += sums[lane];
      sum_product[c + lane] += products[lane];
    }
  });
}

// dx = scale * (dy - offset - (x - mean) * slope).
void CombineRowGradients(const float* x, const float* dy, size_t rows, size_t channels,
                         const float* mean, const float* scale, const float* offset,
                         const float* slope, float* dx) {
  ForEachBlock(rows, channels, [=](auto tag, size_t c, size_t begin, size_t count) HWY_ATTR {
    const auto centre = hn::LoadU(tag, mean + c);
    const auto factor = hn::LoadU(tag, scale + c);
    const auto constant = hn::LoadU(tag, offset + c);
    const auto steepness = hn::LoadU(tag, slope + c);
    for (size_t i = begin * channels + c; count > 0; --count, i += channels) {
      const auto centred = hn::Sub(hn::LoadU(tag, x + i), centre);
      const auto direct = hn::Sub(hn::LoadU(tag, dy + i), constant);
      hn::StoreU(hn::Mul(factor, hn::NegMulAdd(centred, steepness, direct)), tag, dx + i);
    }
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
