// The formula of Adam for vectors of elements. Highway compiles this once per SIMD target.
#if defined(THIMBLE_ADAM_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_ADAM_ELEMENTS_INL_H_
#undef THIMBLE_ADAM_ELEMENTS_INL_H_
#else
#define THIMBLE_ADAM_ELEMENTS_INL_H_
#endif

#include <hwy/highway.h>

#include "thimble/ops/adam_update/adam_update.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One of the factors for all lanes.
template <class Tag>
HWY_INLINE hn::Vec<Tag> AdamFactor(Tag tag, double factor) {
  return hn::Set(tag, static_cast<float>(factor));
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> NextMoment(Tag tag, double kept, const AdamFactors& factors,
                                   hn::Vec<Tag> moment, hn::Vec<Tag> gradient) {
  return hn::MulAdd(AdamFactor(tag, kept), moment,
                    hn::Mul(AdamFactor(tag, factors.new_share1), gradient));
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> NextRoot(Tag tag, double kept, const AdamFactors& factors,
                                 hn::Vec<Tag> root, hn::Vec<Tag> gradient) {
  const auto squares =
      hn::MulAdd(AdamFactor(tag, kept), hn::Mul(root, root),
                 hn::Mul(AdamFactor(tag, factors.new_share2), hn::Mul(gradient, gradient)));
  return hn::Sqrt(squares);
}

template <class Tag>
HWY_INLINE hn::Vec<Tag> NextWeight(Tag tag, const AdamFactors& factors, hn::Vec<Tag> weight,
                                   hn::Vec<Tag> moment, hn::Vec<Tag> root) {
  const auto bound =
      hn::MulAdd(AdamFactor(tag, factors.bound_slope), root, AdamFactor(tag, factors.bound_offset));
  const auto numerator =
      hn::Mul(AdamFactor(tag, factors.rate), hn::Max(hn::Min(moment, bound), hn::Neg(bound)));
  // NaN stays, whatever Min and Max make of it: it is in the root too.
  const auto step = hn::Div(numerator, hn::MulAdd(root, AdamFactor(tag, factors.root_scale),
                                                  AdamFactor(tag, factors.epsilon)));
  // The decay of one update may be less than half a unit of the weight: it is not rounded alone.
  const auto change = hn::MulAdd(AdamFactor(tag, factors.decay), weight, step);
  return hn::Sub(weight, change);
}

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif
