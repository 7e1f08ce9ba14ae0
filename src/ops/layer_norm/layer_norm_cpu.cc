#include <algorithm>
#include <cmath>
#include <limits>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/layer_norm/layer_norm.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/layer_norm/layer_norm_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

#ifndef THIMBLE_OPS_LAYER_NORM_CPU_ONCE_
#define THIMBLE_OPS_LAYER_NORM_CPU_ONCE_
namespace thimble {
namespace {

// The rows of x (..., C) and the chunks in which they are processed.
struct LayerRows {
  size_t channels;
  size_t rows;
  size_t rows_per_chunk;
  size_t chunks;

  LayerRows(const Shape& x, size_t most_chunks) : channels(static_cast<size_t>(x[x.rank() - 1])) {
    rows = channels == 0 ? 0 : static_cast<size_t>(x.elements()) / channels;
    const size_t by_size = kElementsPerChunk / std::max<size_t>(1, channels);
    rows_per_chunk = std::max<size_t>({1, by_size, (rows + most_chunks - 1) / most_chunks});
    chunks = (rows + rows_per_chunk - 1) / rows_per_chunk;
  }
  size_t Begin(size_t chunk) const { return chunk * rows_per_chunk; }
  size_t End(size_t chunk) const { return std::min(rows, Begin(chunk) + rows_per_chunk); }
};

// x, y: (rows, C); mean, variance: (rows); gamma, beta: (C). y may be x.
struct LayerNormArrays {
  ConstNumbers x;
  const float* gamma;
  const float* beta;
  Numbers y;
  float* mean;
  float* variance;
  size_t channels;
  double epsilon;
};

// x, dy, dx: (rows, C); mean, variance: (rows); gamma: (C). dx may be x or dy.
struct LayerNormGradArrays {
  ConstNumbers x;
  const float* gamma;
  const float* mean;
  const float* variance;
  ConstNumbers dy;
  Numbers dx;
  size_t channels;
  double epsilon;
};

// Both directions normalize with the statistics as they are stored.
float InverseDeviation(float variance, double epsilon) {
  return static_cast<float>(1.0 / std::sqrt(variance + epsilon));
}

}  // namespace
}  // namespace thimble
#endif

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A row as floats, piece by piece.
class RowReader {
 public:
  // `copy` has room for a piece. It may be overwritten when the last pass has read from it.
  HWY_INLINE RowReader(ConstNumbers row, float* copy) : row_(row), copy_(copy) {}

  // A row that is one piece, which most are, is converted only once.
  HWY_INLINE const float* Piece(size_t begin, size_t count) {
    if (row_.is_float()) return row_.floats() + begin;
    if (copied_ != begin) {
      VisitNumbers(row_ + begin,
                   [&](const auto* stored) HWY_ATTR { Decode(stored, count, copy_); });
      copied_ = begin;
    }
    return copy_;
  }

 private:
  ConstNumbers row_;
  float* copy_;
  size_t copied_ = std::numeric_limits<size_t>::max();
};

// Calls body(begin, count) for the pieces of a row.
template <class Body>
HWY_INLINE void ForEachRowPiece(size_t channels, const Body& body) {
  for (size_t begin = 0; begin < channels; begin += kNumbersPerPiece) {
    body(begin, std::min(kNumbersPerPiece, channels - begin));
  }
}

// Calls body(i, room) for vectors of a piece of a row: room is where the results go.
template <class Body>
HWY_INLINE void WriteRowPiece(Numbers row, size_t begin, size_t count, float* copy,
                              const Body& body) {
  float* room = row.is_float() ? row.floats() + begin : copy;
  ForEachVector(count,
                [&](auto tag, size_t i) HWY_ATTR { hn::StoreU(body(tag, i), tag, room + i); });
  if (row.is_float()) return;
  VisitNumbers(row + begin, [&](auto* stored) HWY_ATTR { Encode(copy, count, stored); });
}

// Adds to kSums sums: body(tag, i, terms) adds the lanes at i to its vectors. Several chains, so
// that additions need not wait for each other; floats within a piece, doubles across pieces.
template <size_t kSums, class Body>
HWY_INLINE void AddPiece(size_t count, double (&sums)[kSums], const Body& body) {
  constexpr size_t kChains = 4;
  const WideTag wide;
  const OneLaneTag one;
  const size_t lanes = hn::Lanes(wide);
  hn::Vec<WideTag> chains[kChains][kSums];
  hn::Vec<OneLaneTag> rest[kSums];
  for (size_t s = 0; s < kSums; ++s) {
    for (size_t k = 0; k < kChains; ++k) chains[k][s] = hn::Zero(wide);
    rest[s] = hn::Zero(one);
  }
  size_t i = 0;
  for (; i + kChains * lanes <= count; i += kChains * lanes) {
    for (size_t k = 0; k < kChains; ++k) body(wide, i + k * lanes, chains[k]);
  }
  for (; i + lanes <= count; i += lanes) body(wide, i, chains[0]);
  for (; i < count; ++i) body(one, i, rest);
  for (size_t s = 0; s < kSums; ++s) {
    const auto all =
        hn::Add(hn::Add(chains[0][s], chains[1][s]), hn::Add(chains[2][s], chains[3][s]));
    sums[s] += hn::GetLane(hn::SumOfLanes(wide, all)) + hn::GetLane(rest[s]);
  }
}

struct RowMoments {
  float mean;
  float variance;
};

// The squares are of distances from a first approximation of the mean, which corrects both: large
// means do not cancel, and the mean is exact to the last digit.
HWY_INLINE RowMoments MeasureRow(RowReader& x, size_t channels) {
  const double inverse = 1.0 / static_cast<double>(channels);
  double sum[1] = {0};
  ForEachRowPiece(channels, [&](size_t begin, size_t count) HWY_ATTR {
    const float* piece = x.Piece(begin, count);
    AddPiece(count, sum, [=](auto tag, size_t i, auto* terms) HWY_ATTR {
      terms[0] = hn::Add(terms[0], hn::LoadU(tag, piece + i));
    });
  });
  const auto centre = static_cast<float>(sum[0] * inverse);
  double moments[2] = {0, 0};
  ForEachRowPiece(channels, [&](size_t begin, size_t count) HWY_ATTR {
    const float* piece = x.Piece(begin, count);
    AddPiece(count, moments, [=](auto tag, size_t i, auto* terms) HWY_ATTR {
      const auto distance = hn::Sub(hn::LoadU(tag, piece + i), hn::Set(tag, centre));
      terms[0] = hn::Add(terms[0], distance);
      terms[1] = hn::MulAdd(distance, distance, terms[1]);
    });
  });
  const double offset = moments[0] * inverse;
  const double variance = moments[1] * inverse - offset * offset;
  // Rounding can give a tiny negative number if all values are equal; NaN must stay.
  return {static_cast<float>(centre + offset), static_cast<float>(variance < 0 ? 0 : variance)};
}

// Rows [begin, end).
void NormalizeLayerRows(const LayerNormArrays& arrays, size_t begin_row, size_t end_row) {
  HWY_ALIGN float copy[kNumbersPerPiece];
  for (size_t row = begin_row; row < end_row; ++row) {
    const size_t first = row * arrays.channels;
    RowReader x(arrays.x + first, copy);
    const RowMoments moments = MeasureRow(x, arrays.channels);
    const float inverse = InverseDeviation(moments.variance, arrays.epsilon);
    ForEachRowPiece(arrays.channels, [&](size_t begin, size_t count) HWY_ATTR {
      const float* piece = x.Piece(begin, count);
      const float* gamma = arrays.gamma + begin;
      const float* beta = arrays.beta + begin;
      WriteRowPiece(arrays.y + first, begin, count, copy, [=](auto tag, size_t i) HWY_ATTR {
        const auto centred = hn::Sub(hn::LoadU(tag, piece + i), hn::Set(tag, moments.mean));
        const auto normalized = hn::Mul(centred, hn::Set(tag, inverse));
        return hn::MulAdd(normalized, hn::LoadU(tag, gamma + i), hn::LoadU(tag, beta + i));
      });
    });
    arrays.mean[row] = moments.mean;
    arrays.variance[row] = moments.variance;
  }
}

// dx of one row; adds the row's part to dgamma and dbeta (C).
HWY_INLINE void DifferentiateRow(const LayerNormGradArrays& arrays, size_t row, float* dgamma,
                                 float* dbeta) {
  HWY_ALIGN float x_copy[kNumbersPerPiece];
  HWY_ALIGN float dy_copy[kNumbersPerPiece];
  const size_t first = row * arrays.channels;
  RowReader x(arrays.x + first, x_copy);
  RowReader dy(arrays.dy + first, dy_copy);
  const float mean = arrays.mean[row];
  const float inverse = InverseDeviation(arrays.variance[row], arrays.epsilon);
  const auto normalize = [=](auto tag, const float* from) HWY_ATTR {
    return hn::Mul(hn::Sub(hn::LoadU(tag, from), hn::Set(tag, mean)), hn::Set(tag, inverse));
  };
  double sums[2] = {0, 0};  // of gamma * dy, and of its product with normalized x
  ForEachRowPiece(arrays.channels, [&](size_t begin, size_t count) HWY_ATTR {
    const float* x_piece = x.Piece(begin, count);
    const float* dy_piece = dy.Piece(begin, count);
    AddPiece(count, sums, [=](auto tag, size_t i, auto* terms) HWY_ATTR {
      const auto normalized = normalize(tag, x_piece + i);
      const auto slope = hn::LoadU(tag, dy_piece + i);
      float* product_sum = dgamma + begin + i;
      float* slope_sum = dbeta + begin + i;
      hn::StoreU(hn::MulAdd(slope, normalized, hn::LoadU(tag, product_sum)), tag, product_sum);
      hn::StoreU(hn::Add(slope, hn::LoadU(tag, slope_sum)), tag, slope_sum);
      const auto direct = hn::Mul(slope, hn::LoadU(tag, arrays.gamma + begin + i));
      terms[0] = hn::Add(terms[0], direct);
      terms[1] = hn::MulAdd(direct, normalized, terms[1]);
    });
  });
  const double count_inverse = 1.0 / static_cast<double>(arrays.channels);
  const auto offset = static_cast<float>(sums[0] * count_inverse);
  const auto steepness = static_cast<float>(sums[1] * count_inverse);
  ForEachRowPiece(arrays.channels, [&](size_t begin, size_t count) HWY_ATTR {
    const float* x_piece = x.Piece(begin, count);
    const float* dy_piece = dy.Piece(begin, count);
    const float* gamma = arrays.gamma + begin;
    WriteRowPiece(arrays.dx + first, begin, count, dy_copy, [=](auto tag, size_t i) HWY_ATTR {
      const auto direct =
          hn::MulSub(hn::LoadU(tag, dy_piece + i), hn::LoadU(tag, gamma + i), hn::Set(tag, offset));
      const auto normalized = normalize(tag, x_piece + i);
      const auto slope = hn::NegMulAdd(normalized, hn::Set(tag, steepness), direct);
      return hn::Mul(slope, hn::Set(tag, inverse));
    });
  });
}

// Rows [begin, end). sums: (2, C), overwritten: dgamma and dbeta of these rows.
void DifferentiateLayerRows(const LayerNormGradArrays& arrays, size_t begin_row, size_t end_row,
                            float* sums) {
  const size_t channels = arrays.channels;
  std::fill_n(sums, 2 * channels, 0.0F);
  for (size_t row = begin_row; row < end_row; ++row) {
    DifferentiateRow(arrays, row, sums, sums + channels);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(NormalizeLayerRows);
HWY_EXPORT(DifferentiateLayerRows);

namespace {

// Enough to keep 32 threads busy; each needs sums of its own.
constexpr size_t kMostGradChunks = 32;

// Sums turn into doubles after this many rows, so that no chain of float additions is longer.
constexpr size_t kRowsPerSum = 128;

LayerRows GradRows(const Shape& x) { return {x, kMostGradChunks}; }

// Float sums of each thread and double sums of each chunk, all (2, C): dgamma and dbeta.
struct LayerGradScratch {
  LayerGradScratch(std::span<std::byte> scratch, size_t threads, const LayerRows& rows)
      : size(2 * rows.channels),
        floats(reinterpret_cast<float*>(scratch.data())),
        doubles(reinterpret_cast<double*>(floats + threads * size)) {}

  static size_t SizeBytes(size_t threads, const LayerRows& rows) {
    if (rows.chunks == 0) return 0;
    return 2 * rows.channels * (threads * sizeof(float) + rows.chunks * sizeof(double));
  }
  float* OfThread(size_t thread) const { return floats + thread * size; }
  double* OfChunk(size_t chunk) const { return doubles + chunk * size; }

  size_t size;
  float* floats;
  double* doubles;
};

// dgamma, dbeta: the sums of all chunks, in order.
void AddUpChunks(ThreadPool& pool, const LayerRows& rows, const LayerGradScratch& scratch,
                 float* dgamma, float* dbeta) {
  constexpr size_t kAtOnce = 256;
  const size_t channels = rows.channels;
  pool.Run((scratch.size + kAtOnce - 1) / kAtOnce, [&](size_t task, size_t /*thread*/) {
    double sums[kAtOnce] = {};
    const size_t begin = task * kAtOnce;
    const size_t end = std::min(scratch.size, begin + kAtOnce);
    for (size_t chunk = 0; chunk < rows.chunks; ++chunk) {
      const double* more = scratch.OfChunk(chunk);
      for (size_t i = begin; i < end; ++i) sums[i - begin] += more[i];
    }
    for (size_t i = begin; i < end; ++i) {
      float& sum = i < channels ? dgamma[i] : dbeta[i - channels];
      sum = static_cast<float>(sums[i - begin]);
    }
  });
}

}  // namespace

void LayerNormCpu::Run(const KernelCall& call) {
  const LayerRows rows(call.in_shape(0), std::numeric_limits<size_t>::max());
  const LayerNormArrays arrays{.x = ConstNumbersOf(call.inputs[0]),
                               .gamma = call.In<float>(1),
                               .beta = call.In<float>(2),
                               .y = NumbersOf(call.outputs[0]),
                               .mean = call.Out<float>(1),
                               .variance = call.Out<float>(2),
                               .channels = rows.channels,
                               .epsilon = call.attributes.Float("epsilon")};
  if (rows.channels == 0) {
    const auto count = static_cast<size_t>(call.out_shape(1).elements());
    std::fill_n(arrays.mean, count, 0.0F);
    std::fill_n(arrays.variance, count, 0.0F);
  }
  call.pool.Run(rows.chunks, [&](size_t chunk, size_t /*thread*/) {
    HWY_DYNAMIC_DISPATCH(NormalizeLayerRows)(arrays, rows.Begin(chunk), rows.End(chunk));
  });
}

size_t LayerNormGradCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return LayerGradScratch::SizeBytes(static_cast<size_t>(limits.threads), GradRows(call.inputs[0]));
}

void LayerNormGradCpu::Run(const KernelCall& call) {
  const LayerRows rows = GradRows(call.in_shape(0));
  const LayerGradScratch scratch(call.scratch, static_cast<size_t>(call.pool.num_threads()), rows);
  const LayerNormGradArrays arrays{.x = ConstNumbersOf(call.inputs[0]),
                                   .gamma = call.In<float>(1),
                                   .mean = call.In<float>(2),
                                   .variance = call.In<float>(3),
                                   .dy = ConstNumbersOf(call.inputs[4]),
                                   .dx = NumbersOf(call.outputs[0]),
                                   .channels = rows.channels,
                                   .epsilon = call.attributes.Float("epsilon")};
  call.pool.Run(rows.chunks, [&](size_t chunk, size_t thread) {
    float* sums = scratch.OfThread(thread);
    double* total = scratch.OfChunk(chunk);
    std::fill_n(total, scratch.size, 0.0);
    for (size_t row = rows.Begin(chunk); row < rows.End(chunk); row += kRowsPerSum) {
      const size_t end = std::min(rows.End(chunk), row + kRowsPerSum);
      HWY_DYNAMIC_DISPATCH(DifferentiateLayerRows)(arrays, row, end, sums);
      for (size_t i = 0; i < scratch.size; ++i) total[i] += sums[i];
    }
  });
  AddUpChunks(call.pool, rows, scratch, call.Out<float>(1), call.Out<float>(2));
}

}  // namespace thimble
#endif  // HWY_ONCE
