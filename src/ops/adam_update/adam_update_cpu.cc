#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/adam_update/adam_update.h"
#include "thimble/ops/update_rounding.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/adam_update/adam_update_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"
#include "thimble/ops/adam_update/adam_elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Inputs and outputs are in the order of the op. The next arrays may be the old ones.
void AdamUpdate(const AdamFactors& factors, float gradient_factor, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto gradient = hn::Mul(hn::Set(tag, gradient_factor), hn::LoadU(tag, piece.in[1] + i));
    const auto moment =
        NextMoment(tag, factors.beta1, factors, hn::LoadU(tag, piece.in[2] + i), gradient);
    const auto root =
        NextRoot(tag, factors.beta2, factors, hn::LoadU(tag, piece.in[3] + i), gradient);
    hn::StoreU(NextWeight(tag, factors, weight, moment, root), tag, piece.out[0] + i);
    hn::StoreU(moment, tag, piece.out[1] + i);
    hn::StoreU(root, tag, piece.out[2] + i);
  });
}

// With a factor of 0 the gradient is not used, whatever it is.
void AdamGather(const AdamFactors& factors, bool first, float gradient_factor,
                const NumberPiece& piece) {
  const double kept1 = first ? factors.beta1 : 1;
  const double kept2 = first ? factors.beta2 : 1;
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    auto gradient = hn::Zero(tag);
    if (gradient_factor != 0) {
      gradient = hn::Mul(hn::Set(tag, gradient_factor), hn::LoadU(tag, piece.in[0] + i));
    }
    const auto moment = hn::LoadU(tag, piece.in[1] + i);
    const auto root = hn::LoadU(tag, piece.in[2] + i);
    hn::StoreU(NextMoment(tag, kept1, factors, moment, gradient), tag, piece.out[0] + i);
    hn::StoreU(NextRoot(tag, kept2, factors, root, gradient), tag, piece.out[1] + i);
  });
}

void AdamApply(const AdamFactors& factors, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto moment = hn::LoadU(tag, piece.in[1] + i);
    const auto root = hn::LoadU(tag, piece.in[2] + i);
    hn::StoreU(NextWeight(tag, factors, weight, moment, root), tag, piece.out[0] + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(AdamUpdate);
HWY_EXPORT(AdamGather);
HWY_EXPORT(AdamApply);

namespace {

// Calls body for pieces of the arrays and rounds the results.
void ForEachPiece(const KernelCall& call, const AdamInputs& inputs, uint32_t occasion,
                  FunctionRef<void(const NumberPiece&)> body) {
  NumberRounding rounding;
  RoundingDraw draw = DrawOf(call.attributes);
  if (RoundsAtRandom(call.attributes)) {
    draw.update = static_cast<uint32_t>(call.In<int32_t>(inputs.update)[0]);
    draw.occasion = occasion;
    rounding.draw = &draw;
  }
  ParallelNumbers(call.pool, call.inputs.first(inputs.arrays), call.outputs, rounding, body);
}

}  // namespace

void AdamUpdateCpu::Run(const KernelCall& call) {
  const float gradient_factor = GradientFactorOf(call, kAdamUpdateInputs);
  if (gradient_factor == 0) {
    CopyNumbers(call.pool, call.inputs[0], call.outputs[0]);
    CopyNumbers(call.pool, call.inputs[2], call.outputs[1]);
    return CopyNumbers(call.pool, call.inputs[3], call.outputs[2]);
  }
  const AdamFactors factors = AdamFactorsOf(call, kAdamUpdateInputs);
  ForEachPiece(call, kAdamUpdateInputs, 0, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(AdamUpdate)(factors, gradient_factor, piece);
  });
}

void AdamGatherCpu::Run(const KernelCall& call) {
  const float gradient_factor = GradientFactorOf(call, kAdamGatherInputs);
  const auto seen = static_cast<uint32_t>(call.In<int32_t>(kAdamGatherInputs.seen)[0]);
  if (gradient_factor == 0 && seen != 0) {
    CopyNumbers(call.pool, call.inputs[1], call.outputs[0]);
    return CopyNumbers(call.pool, call.inputs[2], call.outputs[1]);
  }
  const AdamFactors factors = AdamFactorsOf(call, kAdamGatherInputs);
  ForEachPiece(call, kAdamGatherInputs, seen + 1, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(AdamGather)(factors, seen == 0, gradient_factor, piece);
  });
}

void AdamApplyCpu::Run(const KernelCall& call) {
  const AdamFactors factors = AdamFactorsOf(call, kAdamApplyInputs);
  ForEachPiece(call, kAdamApplyInputs, 0, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(AdamApply)(factors, piece);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
