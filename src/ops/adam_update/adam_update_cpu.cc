#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/adam_update/adam_update.h"
#include "thimble/ops/update_rounding.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/adam_update/adam_update_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// One of the factors for all lanes.
template <class Tag>
HWY_INLINE hn::Vec<Tag> Factor(Tag tag, double factor) {
  return hn::Set(tag, static_cast<float>(factor));
}

// Inputs and outputs are in the order of the op. The next arrays may be the old ones.
void AdamUpdate(const AdamFactors& factors, float gradient_factor, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto gradient = hn::Mul(hn::Set(tag, gradient_factor), hn::LoadU(tag, piece.in[1] + i));
    const auto root = hn::LoadU(tag, piece.in[3] + i);
    const auto moment = hn::MulAdd(Factor(tag, factors.beta1), hn::LoadU(tag, piece.in[2] + i),
                                   hn::Mul(Factor(tag, factors.new_share1), gradient));
    const auto squares =
        hn::MulAdd(Factor(tag, factors.beta2), hn::Mul(root, root),
                   hn::Mul(Factor(tag, factors.new_share2), hn::Mul(gradient, gradient)));
    const auto next_root = hn::Sqrt(squares);
    const auto bound =
        hn::MulAdd(Factor(tag, factors.bound_slope), next_root, Factor(tag, factors.bound_offset));
    const auto numerator =
        hn::Mul(Factor(tag, factors.rate), hn::Max(hn::Min(moment, bound), hn::Neg(bound)));
    // NaN stays, whatever Min and Max make of it: it is in the root too.
    const auto step = hn::Div(numerator, hn::MulAdd(next_root, Factor(tag, factors.root_scale),
                                                    Factor(tag, factors.epsilon)));
    // The decay of one update may be less than half a unit of the weight: it is not rounded alone.
    const auto change = hn::MulAdd(Factor(tag, factors.decay), weight, step);
    hn::StoreU(hn::Sub(weight, change), tag, piece.out[0] + i);
    hn::StoreU(moment, tag, piece.out[1] + i);
    hn::StoreU(next_root, tag, piece.out[2] + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(AdamUpdate);

void AdamUpdateCpu::Run(const KernelCall& call) {
  const bool has_factor = call.inputs.size() > kAdamFactor;
  const float gradient_factor = has_factor ? call.In<float>(kAdamFactor)[0] : 1.0F;
  if (gradient_factor == 0) {
    CopyNumbers(call.pool, call.inputs[0], call.outputs[0]);
    CopyNumbers(call.pool, call.inputs[2], call.outputs[1]);
    return CopyNumbers(call.pool, call.inputs[3], call.outputs[2]);
  }
  const int32_t update = call.In<int32_t>(kAdamUpdate)[0];
  const AdamFactors factors(AdamSpecOf(call.attributes), call.In<float>(kAdamRate)[0], update);
  NumberRounding rounding;
  RoundingDraw draw = DrawOf(call.attributes);
  if (RoundsAtRandom(call.attributes)) {
    draw.update = static_cast<uint32_t>(update);
    rounding.draw = &draw;
  }
  ParallelNumbers(call.pool, call.inputs.first(kAdamArrays), call.outputs, rounding,
                  [&](const NumberPiece& piece) {
                    HWY_DYNAMIC_DISPATCH(AdamUpdate)(factors, gradient_factor, piece);
                  });
}

}  // namespace thimble
#endif  // HWY_ONCE
