#include "thimble/ops/softmax_cross_entropy/softmax_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/softmax_cross_entropy/softmax_row.cc"
// clang-format off
#include <hwy/foreach_target.h>  // before all code for the targets
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// exp(x - largest) of the lanes at `row`. Highway's Exp turns NaN into 0; here NaN stays.
template <class Tag>
HWY_INLINE hn::Vec<Tag> ShiftedExponential(Tag tag, const float* row, float largest) {
  const auto shifted = hn::Sub(hn::LoadU(tag, row), hn::Set(tag, largest));
  return hn::IfThenElse(hn::IsNaN(shifted), shifted, hn::Exp(tag, shifted));
}

// Calls vector_body(i) for whole vectors and lane_body(i) for the remainder of [0, count).
template <class VectorBody, class LaneBody>
HWY_INLINE void ForVectorsAndRest(size_t count, const VectorBody& vector_body,
                                  const LaneBody& lane_body) {
  const size_t lanes = hn::Lanes(WideTag());
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) vector_body(i);
  for (; i < count; ++i) lane_body(i);
}

// The largest logit that is not NaN.
float RowMaximum(const float* row, size_t classes) {
  const WideTag tag;
  const auto lowest = hn::Set(tag, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  float rest = -std::numeric_limits<float>::infinity();
  ForVectorsAndRest(
      classes,
      [&](size_t i) HWY_ATTR {
        const auto logits = hn::LoadU(tag, row + i);
        largest = hn::Max(largest, hn::IfThenElse(hn::IsNaN(logits), lowest, logits));
      },
      [&](size_t i) HWY_ATTR { rest = row[i] > rest ? row[i] : rest; });
  const float vector_maximum = hn::GetLane(hn::MaxOfLanes(tag, largest));
  return vector_maximum > rest ? vector_maximum : rest;
}

size_t FirstInRowAbove(const float* row, size_t count, float limit) {
  const WideTag tag;
  const size_t lanes = hn::Lanes(tag);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto above = hn::Gt(hn::LoadU(tag, row + i), hn::Set(tag, limit));
    if (!hn::AllFalse(tag, above)) return i + hn::FindKnownFirstTrue(tag, above);
  }
  while (i < count && !(row[i] > limit)) ++i;
  return i;
}

// The sum of terms(tag, i) over the elements i of a row. Each lane sums in floats, the lanes are
// added in doubles.
template <class Terms>
HWY_INLINE double SumOfTerms(size_t count, const Terms& terms) {
  const WideTag tag;
  auto sums = hn::Zero(tag);
  double sum = 0;
  ForVectorsAndRest(
      count, [&](size_t i) HWY_ATTR { sums = hn::Add(sums, terms(tag, i)); },
      [&](size_t i) HWY_ATTR { sum += hn::GetLane(terms(OneLaneTag(), i)); });
  HWY_ALIGN float lanes[16];
  hn::StoreU(sums, tag, lanes);
  for (size_t lane = 0; lane < hn::Lanes(tag); ++lane) sum += lanes[lane];
  return sum;
}

double RowSumOfExponentials(const float* row, size_t classes, float largest) {
  return SumOfTerms(classes, [=](auto tag, size_t i)
                                 HWY_ATTR { return ShiftedExponential(tag, row + i, largest); });
}

double RowSum(const float* row, size_t count) {
  return SumOfTerms(count, [=](auto tag, size_t i) HWY_ATTR { return hn::LoadU(tag, row + i); });
}

void RowExponentials(const float* row, size_t count, float shift, float factor, float* out) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto exponential = ShiftedExponential(tag, row + i, shift);
    hn::StoreU(hn::Mul(exponential, hn::Set(tag, factor)), tag, out + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(RowMaximum);
HWY_EXPORT(FirstInRowAbove);
HWY_EXPORT(RowSumOfExponentials);
HWY_EXPORT(RowSum);
HWY_EXPORT(RowExponentials);

namespace {

// As in the reference: a NaN in first place counts as the maximum.
size_t FirstMaximumOfRow(const float* row, size_t classes) {
  if (std::isnan(row[0])) return 0;
  const float maximum = LargestOfRow(row, classes);
  return static_cast<size_t>(std::find(row, row + classes, maximum) - row);
}

}  // namespace

RowSoftmax::RowSoftmax(const float* row, size_t classes)
    : best(FirstMaximumOfRow(row, classes)), largest(row[best]) {
  others = SumOfExponentials(row, best, largest) +
           SumOfExponentials(row + best + 1, classes - best - 1, largest);
  // An infinite maximum makes the row NaN, as it does in the formula.
  others += static_cast<double>(largest - largest);
}

void ScaledExponentials(const float* row, size_t count, float shift, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(RowExponentials)(row, count, shift, factor, out);
}

float LargestOfRow(const float* row, size_t count) {
  return HWY_DYNAMIC_DISPATCH(RowMaximum)(row, count);
}

size_t FirstAbove(const float* row, size_t count, float limit) {
  return HWY_DYNAMIC_DISPATCH(FirstInRowAbove)(row, count, limit);
}

double SumOfRow(const float* row, size_t count) { return HWY_DYNAMIC_DISPATCH(RowSum)(row, count); }

double SumOfExponentials(const float* row, size_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(RowSumOfExponentials)(row, count, shift);
}

}  // namespace thimble
#endif  // HWY_ONCE
