#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/sgd_update/sgd_update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/sgd_update/sgd_update_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// All arrays: (count). The next arrays may be the old ones.
void SgdUpdate(const SgdConstants& constants, const float* weight, const float* gradient,
               const float* momentum, float* next_weight, float* next_momentum, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto old_weight = hn::LoadU(tag, weight + i);
    const auto factor = hn::Set(tag, constants.momentum);
    const auto slope =
        hn::MulAdd(hn::Set(tag, constants.weight_decay), old_weight, hn::LoadU(tag, gradient + i));
    const auto gathered = hn::MulAdd(factor, hn::LoadU(tag, momentum + i), slope);
    const auto step = constants.nesterov ? hn::MulAdd(factor, gathered, slope) : gathered;
    const auto rate = hn::Set(tag, constants.learning_rate);
    hn::StoreU(hn::NegMulAdd(rate, step, old_weight), tag, next_weight + i);
    hn::StoreU(gathered, tag, next_momentum + i);
  });
}

void SgdUpdatePlain(const SgdConstants& constants, const float* weight, const float* gradient,
                    float* next_weight, size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const auto old_weight = hn::LoadU(tag, weight + i);
    const auto slope =
        hn::MulAdd(hn::Set(tag, constants.weight_decay), old_weight, hn::LoadU(tag, gradient + i));
    const auto rate = hn::Set(tag, constants.learning_rate);
    hn::StoreU(hn::NegMulAdd(rate, slope, old_weight), tag, next_weight + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(SgdUpdate);
HWY_EXPORT(SgdUpdatePlain);

void SgdUpdateCpu::Run(const KernelCall& call) {
  const SgdConstants constants{call.In<float>(3)[0],
                               static_cast<float>(call.attributes.Float("momentum")),
                               static_cast<float>(call.attributes.Float("weight_decay")),
                               call.attributes.Int("nesterov") != 0};
  ParallelNumbers(call.pool, call.inputs.first(3), call.outputs, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SgdUpdate)
    (constants, piece.in[0], piece.in[1], piece.in[2], piece.out[0], piece.out[1], piece.count);
  });
}

void SgdUpdatePlainCpu::Run(const KernelCall& call) {
  const SgdConstants constants{call.In<float>(2)[0], 0.0F,
                               static_cast<float>(call.attributes.Float("weight_decay")), false};
  ParallelNumbers(call.pool, call.inputs.first(2), call.outputs, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SgdUpdatePlain)
    (constants, piece.in[0], piece.in[1], piece.out[0], piece.count);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
