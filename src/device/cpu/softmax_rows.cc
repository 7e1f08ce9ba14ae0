#include "thimble/device/cpu/softmax_rows.h"

#include <algorithm>
#include <limits>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/softmax_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// After highway.h, which it needs.
#include <hwy/contrib/math/math-inl.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using RowVector = hn::Vec<WideTag>;

// The padding of a row takes part in its vectors; `value` has no effect there.
void FillPadding(const SoftmaxRows& shape, float* row, float value) {
  std::fill(row + shape.width, row + PaddedSoftmaxWidth(shape.width), value);
}

// Highway's Exp turns NaN into 0; here NaN stays.
HWY_INLINE RowVector Exponential(RowVector x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(WideTag(), x));
}

void SoftmaxRow(const SoftmaxRows& shape, float* row) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  const size_t padded = PaddedSoftmaxWidth(shape.width);
  FillPadding(shape, row, -std::numeric_limits<float>::infinity());
  auto largest = hn::LoadU(tag, row);
  for (size_t i = lanes; i < padded; i += lanes) {
    largest = hn::Max(largest, hn::LoadU(tag, row + i));
  }
  largest = hn::MaxOfLanes(tag, largest);
  auto sums = hn::Zero(tag);
  for (size_t i = 0; i < padded; i += lanes) {
    const auto exponential = Exponential(hn::Sub(hn::LoadU(tag, row + i), largest));
    sums = hn::Add(sums, exponential);
    hn::StoreU(exponential, tag, row + i);
  }
  const auto inverse = hn::Div(hn::Set(tag, 1.0F), hn::SumOfLanes(tag, sums));
  for (size_t i = 0; i < padded; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(tag, row + i), inverse), tag, row + i);
  }
}

// The sum of the products of two padded rows.
HWY_INLINE RowVector DotOfRows(size_t padded, const float* a, const float* b) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  auto sums = hn::Zero(tag);
  for (size_t i = 0; i < padded; i += lanes) {
    sums = hn::MulAdd(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i), sums);
  }
  return hn::SumOfLanes(tag, sums);
}

// The mean is subtracted twice: see softmax_formula.h.
void SoftmaxGradientRow(const SoftmaxRows& shape, float factor, float* probabilities,
                        float* gradients) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  const size_t padded = PaddedSoftmaxWidth(shape.width);
  FillPadding(shape, probabilities, 0.0F);
  FillPadding(shape, gradients, 0.0F);
  const auto mean = DotOfRows(padded, probabilities, gradients);
  for (size_t i = 0; i < padded; i += lanes) {
    hn::StoreU(hn::Sub(hn::LoadU(tag, gradients + i), mean), tag, gradients + i);
  }
  const auto error = DotOfRows(padded, probabilities, gradients);
  const auto factors = hn::Set(tag, factor);
  for (size_t i = 0; i < padded; i += lanes) {
    const auto scaled = hn::Mul(hn::LoadU(tag, probabilities + i), factors);
    const auto distance = hn::Sub(hn::LoadU(tag, gradients + i), error);
    hn::StoreU(hn::Mul(scaled, distance), tag, gradients + i);
  }
}

void ScaleRow(const SoftmaxRows& shape, float factor, float* row) {
  ForEachVector(shape.width, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(tag, row + i), hn::Set(tag, factor)), tag, row + i);
  });
}

void SoftmaxOfRows(const SoftmaxRows& shape, float factor, float* rows) {
  for (size_t r = 0; r < shape.rows; ++r) {
    float* row = rows + r * shape.stride;
    if (factor != 1) ScaleRow(shape, factor, row);
    SoftmaxRow(shape, row);
  }
}

void SoftmaxGradientOfRows(const SoftmaxRows& shape, float factor, float* probabilities,
                           float* gradients) {
  for (size_t r = 0; r < shape.rows; ++r) {
    SoftmaxGradientRow(shape, factor, probabilities + r * shape.stride,
                       gradients + r * shape.stride);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(SoftmaxOfRows);
HWY_EXPORT(SoftmaxGradientOfRows);

void SoftmaxInPlace(const SoftmaxRows& shape, float factor, float* rows) {
  HWY_DYNAMIC_DISPATCH(SoftmaxOfRows)(shape, factor, rows);
}

void SoftmaxGradientInPlace(const SoftmaxRows& shape, float factor, float* probabilities,
                            float* gradients) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradientOfRows)(shape, factor, probabilities, gradients);
}

}  // namespace thimble
#endif  // HWY_ONCE
