#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/relu/relu.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/relu/relu_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void Relu(const float* x, float* y, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto in = hn::LoadU(tag, x + i);
    // Select by comparison instead of Max, so that NaN passes through on every target.
    hn::StoreU(hn::IfThenZeroElse(hn::Le(in, hn::Zero(tag)), in), tag, y + i);
  });
}

void ReluGrad(const float* y, const float* dy, float* dx, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto off = hn::Le(hn::LoadU(tag, y + i), hn::Zero(tag));
    hn::StoreU(hn::IfThenZeroElse(off, hn::LoadU(tag, dy + i)), tag, dx + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(Relu);
HWY_EXPORT(ReluGrad);

void ReluCpu::Run(const KernelCall& call) {
  ParallelNumbers(call.pool, call.inputs, call.outputs, [](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(Relu)(piece.in[0], piece.out[0], piece.count);
  });
}

void ReluGradCpu::Run(const KernelCall& call) {
  ParallelNumbers(call.pool, call.inputs, call.outputs, [](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(ReluGrad)(piece.in[0], piece.in[1], piece.out[0], piece.count);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
