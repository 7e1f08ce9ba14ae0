#include "thimble/device/cpu/softmax_rows.h"

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

// Numbers [i, i + lanes) of a row; lanes past its end have `value`, whatever its padding holds.
HWY_INLINE RowVector LoadRow(const SoftmaxRows& shape, const float* row, size_t i, float value) {
  const WideTag tag;
  const auto numbers = hn::LoadU(tag, row + i);
  if (i + hn::Lanes(tag) <= shape.width) return numbers;
  return hn::IfThenElse(hn::FirstN(tag, shape.width - i), numbers, hn::Set(tag, value));
}

// Highway's Exp turns NaN into 0; here NaN stays.
HWY_INLINE RowVector Exponential(RowVector x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(WideTag(), x));
}

void SoftmaxRow(const SoftmaxRows& shape, float* row) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  auto largest = LoadRow(shape, row, 0, kNone);
  for (size_t i = lanes; i < shape.width; i += lanes) {
    largest = hn::Max(largest, LoadRow(shape, row, i, kNone));
  }
  largest = hn::MaxOfLanes(tag, largest);
  auto sums = hn::Zero(tag);
  for (size_t i = 0; i < shape.width; i += lanes) {
    const auto exponential = Exponential(hn::Sub(LoadRow(shape, row, i, kNone), largest));
    sums = hn::Add(sums, exponential);
    hn::StoreU(exponential, tag, row + i);
  }
  const auto inverse = hn::Div(hn::Set(tag, 1.0F), hn::SumOfLanes(tag, sums));
  for (size_t i = 0; i < shape.width; i += lanes) {
    hn::StoreU(hn::Mul(hn::LoadU(tag, row + i), inverse), tag, row + i);
  }
}

// The sum of the products of two rows.
HWY_INLINE RowVector DotOfRows(const SoftmaxRows& shape, const float* a, const float* b) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  auto sums = hn::Zero(tag);
  for (size_t i = 0; i < shape.width; i += lanes) {
    sums = hn::MulAdd(LoadRow(shape, a, i, 0), LoadRow(shape, b, i, 0), sums);
  }
  return hn::SumOfLanes(tag, sums);
}

// The mean is subtracted twice: see softmax_formula.h.
void SoftmaxGradientRow(const SoftmaxRows& shape, float factor, const float* probabilities,
                        float* gradients) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  const auto mean = DotOfRows(shape, probabilities, gradients);
  for (size_t i = 0; i < shape.width; i += lanes) {
    hn::StoreU(hn::Sub(hn::LoadU(tag, gradients + i), mean), tag, gradients + i);
  }
  const auto error = DotOfRows(shape, probabilities, gradients);
  const auto factors = hn::Set(tag, factor);
  for (size_t i = 0; i < shape.width; i += lanes) {
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

void SoftmaxGradientOfRows(const SoftmaxRows& shape, float factor, const float* probabilities,
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

void SoftmaxGradientInPlace(const SoftmaxRows& shape, float factor, const float* probabilities,
                            float* gradients) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradientOfRows)(shape, factor, probabilities, gradients);
}

}  // namespace thimble
#endif  // HWY_ONCE
