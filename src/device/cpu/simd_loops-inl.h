// Loops over floats for code that Highway compiles once per SIMD target. Whole vectors come first,
// the remainder runs through the same code one lane at a time, so that an element's rounding does
// not depend on its position.

// Highway's include guard: the file is included again for every target.
#if defined(THIMBLE_DEVICE_CPU_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef THIMBLE_DEVICE_CPU_SIMD_LOOPS_INL_H_
#undef THIMBLE_DEVICE_CPU_SIMD_LOOPS_INL_H_
#else
#define THIMBLE_DEVICE_CPU_SIMD_LOOPS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {

// At most 16 floats: the widest vector that kernels may keep lane-sized buffers for.
using WideTag = hwy::HWY_NAMESPACE::CappedTag<float, 16>;
using OneLaneTag = hwy::HWY_NAMESPACE::FixedTag<float, 1>;

// Calls body(tag, i) so that the lanes of all calls cover [0, count) once, in order.
template <class Body>
HWY_INLINE void ForEachVector(size_t count, const Body& body) {
  const WideTag wide;
  const OneLaneTag one;
  const size_t lanes = hwy::HWY_NAMESPACE::Lanes(wide);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) body(wide, i);
  for (; i < count; ++i) body(one, i);
}

}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#endif  // include guard
