#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/add/add.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/add/add_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void Add(const float* a, const float* b, float* y, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(tag, a + i), hn::LoadU(tag, b + i)), tag, y + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Add);

void AddCpu::Run(const KernelCall& call) {
  ParallelNumbers(call.pool, call.inputs.first(2), call.outputs, [](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(Add)(piece.in[0], piece.in[1], piece.out[0], piece.count);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
