// The vector code of softmax_cross_entropy for one row of logits (N).

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_OPS_SOFTMAX_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_OPS_SOFTMAX_ROW_INL_H_
#undef THIMBLE_OPS_SOFTMAX_ROW_INL_H_
#else
#define THIMBLE_OPS_SOFTMAX_ROW_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>

#include <limits>

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

// Each lane sums in floats, the lanes are added in doubles.
double RowSumOfExponentials(const float* row, size_t classes, float largest) {
  const WideTag tag;
  auto sums = hn::Zero(tag);
  double sum = 0;
  ForVectorsAndRest(
      classes,
      [&](size_t i) HWY_ATTR { sums = hn::Add(sums, ShiftedExponential(tag, row + i, largest)); },
      [&](size_t i)
          HWY_ATTR { sum += hn::GetLane(ShiftedExponential(OneLaneTag(), row + i, largest)); });
  HWY_ALIGN float lanes[16];
  hn::StoreU(sums, tag, lanes);
  for (size_t lane = 0; lane < hn::Lanes(tag); ++lane) sum += lanes[lane];
  return sum;
}

// out = exp(row - largest) * factor; out may be row.
void RowGradient(const float* row, size_t classes, float largest, float factor, float* out) {
  ForEachVector(classes, [=](auto tag, size_t i) HWY_ATTR {
    const auto exponential = ShiftedExponential(tag, row + i, largest);
    hn::StoreU(hn::Mul(exponential, hn::Set(tag, factor)), tag, out + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
