#include "thimble/ops/accumulate/accumulate_cpu.h"

#include <cstring>

#include "thimble/device/cpu/parallel_elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/accumulate/accumulate_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// All arrays: (count). `next` may be `sum`.
void AddArrays(const float* sum, const float* x, float* next, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(tag, sum + i), hn::LoadU(tag, x + i)), tag, next + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(AddArrays);

void AccumulateCpu::Run(const KernelCall& call) {
  const float* sum = call.In<float>(0);
  const float* x = call.In<float>(1);
  const bool first = call.In<int32_t>(2)[0] == 0;
  float* next = call.Out<float>(0);
  ParallelElements(call.pool, static_cast<size_t>(call.out_shape(0).elements()),
                   [&](size_t begin, size_t end) {
                     if (first) {
                       std::memcpy(next + begin, x + begin, (end - begin) * sizeof(float));
                     } else {
                       HWY_DYNAMIC_DISPATCH(AddArrays)
                       (sum + begin, x + begin, next + begin, end - begin);
                     }
                   });
}

}  // namespace thimble
#endif  // HWY_ONCE
