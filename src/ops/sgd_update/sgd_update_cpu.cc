#include <cstring>

#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/sgd_update/sgd_update.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/sgd_update/sgd_update_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

#ifndef THIMBLE_OPS_SGD_UPDATE_CPU_ONCE_
#define THIMBLE_OPS_SGD_UPDATE_CPU_ONCE_
namespace thimble {
namespace {

struct SgdConstants {
  float learning_rate = 0;
  float momentum = 0;
  float weight_decay = 0;
  float factor = 1;  // of the gradient
  bool nesterov = false;
};

}  // namespace
}  // namespace thimble
#endif

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// factor * gradient + weight_decay * weight.
template <class Tag>
HWY_INLINE hn::Vec<Tag> Slope(Tag tag, const SgdConstants& constants, hn::Vec<Tag> weight,
                              const float* gradient) {
  const auto scaled = hn::Mul(hn::Set(tag, constants.factor), hn::LoadU(tag, gradient));
  return hn::MulAdd(hn::Set(tag, constants.weight_decay), weight, scaled);
}

// Inputs and outputs are in the order of the op. The next arrays may be the old ones.
void SgdUpdate(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto factor = hn::Set(tag, constants.momentum);
    const auto slope = Slope(tag, constants, weight, piece.in[1] + i);
    const auto gathered = hn::MulAdd(factor, hn::LoadU(tag, piece.in[2] + i), slope);
    const auto step = constants.nesterov ? hn::MulAdd(factor, gathered, slope) : gathered;
    const auto rate = hn::Set(tag, constants.learning_rate);
    hn::StoreU(hn::NegMulAdd(rate, step, weight), tag, piece.out[0] + i);
    hn::StoreU(gathered, tag, piece.out[1] + i);
  });
}

void SgdUpdatePlain(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto slope = Slope(tag, constants, weight, piece.in[1] + i);
    const auto rate = hn::Set(tag, constants.learning_rate);
    hn::StoreU(hn::NegMulAdd(rate, slope, weight), tag, piece.out[0] + i);
  });
}

// The first part: the momentum that sgd_update would have with this part's gradient.
void SgdGatherFirst(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto slope = Slope(tag, constants, hn::LoadU(tag, piece.in[0] + i), piece.in[1] + i);
    const auto factor = hn::Set(tag, constants.momentum);
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(tag, piece.in[2] + i), slope), tag, piece.out[0] + i);
  });
}

// The same without a gradient.
void SgdDecay(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto weight = hn::LoadU(tag, piece.in[0] + i);
    const auto slope = hn::Mul(hn::Set(tag, constants.weight_decay), weight);
    const auto factor = hn::Set(tag, constants.momentum);
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(tag, piece.in[2] + i), slope), tag, piece.out[0] + i);
  });
}

void SgdGatherMore(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto factor = hn::Set(tag, constants.factor);
    const auto gradient = hn::LoadU(tag, piece.in[1] + i);
    hn::StoreU(hn::MulAdd(factor, gradient, hn::LoadU(tag, piece.in[2] + i)), tag,
               piece.out[0] + i);
  });
}

// Error feedback. `stored` is what became of out[0].
void SgdFeedback(float gain, const NumberPiece& piece, const float* stored) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto lost = hn::Sub(hn::LoadU(tag, piece.out[0] + i), hn::LoadU(tag, stored + i));
    const auto most = hn::Set(tag, kMostFeedback);
    auto returned = hn::Mul(hn::Set(tag, gain), lost);
    returned = hn::Max(hn::Min(returned, most), hn::Neg(most));
    const auto momentum = hn::LoadU(tag, piece.out[1] + i);
    hn::StoreU(hn::Sub(momentum, returned), tag, piece.out[1] + i);
  });
}

void SgdApply(const SgdConstants& constants, const NumberPiece& piece) {
  ForEachVector(piece.count, [&](auto tag, size_t i) HWY_ATTR {
    const auto rate = hn::Set(tag, constants.learning_rate);
    const auto momentum = hn::LoadU(tag, piece.in[1] + i);
    hn::StoreU(hn::NegMulAdd(rate, momentum, hn::LoadU(tag, piece.in[0] + i)), tag,
               piece.out[0] + i);
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
HWY_EXPORT(SgdGatherFirst);
HWY_EXPORT(SgdDecay);
HWY_EXPORT(SgdGatherMore);
HWY_EXPORT(SgdApply);
HWY_EXPORT(SgdFeedback);

namespace {

float Attribute(const KernelCall& call, std::string_view name) {
  return static_cast<float>(call.attributes.Float(name));
}

// How the pieces of the arrays are rounded, if the node rounds at random.
struct FourRounding {
  uint32_t occasion = 0;
  size_t first_number = 0;  // of the arrays in the whole tensor
  float gain = 0;           // of error feedback, also if the node rounds to the nearest
};

// Calls body for pieces of the arrays and rounds the results.
void ForEachPiece(const KernelCall& call, const SgdInputs& where, const FourRounding& how,
                  FunctionRef<void(const NumberPiece&)> body) {
  NumberRounding rounding;
  RoundingDraw draw = DrawOf(call.attributes);
  if (RoundsAtRandom(call.attributes)) {
    draw.update = static_cast<uint32_t>(call.In<int32_t>(where.update)[0]);
    draw.occasion = how.occasion;
    rounding.draw = &draw;
    rounding.first_number = how.first_number;
  }
  const auto feed_back = [&how](const NumberPiece& piece, const float* stored) {
    HWY_DYNAMIC_DISPATCH(SgdFeedback)(how.gain, piece, stored);
  };
  const NumberRounding::Written first_written(feed_back);
  if (how.gain > 0) rounding.first_written = &first_written;
  ParallelNumbers(call.pool, call.inputs.first(where.arrays), call.outputs, rounding, body);
}

float GainOf(const KernelCall& call, const SgdConstants& constants) {
  return FeedbackGain(constants.momentum, constants.nesterov, Attribute(call, "feedback_rate"),
                      constants.learning_rate);
}

// The result of a skipped update.
void CopyStored(const KernelCall& call, size_t input, size_t output) {
  CopyNumbers(call.pool, call.inputs[input], call.outputs[output]);
}

}  // namespace

void SgdUpdateCpu::RunRange(const KernelCall& call, size_t first_number) {
  const SgdConstants constants{call.In<float>(3)[0], Attribute(call, "momentum"),
                               Attribute(call, "weight_decay"), SgdFactorOf(call, kSgdUpdateInputs),
                               call.attributes.Int("nesterov") != 0};
  if (constants.factor == 0) {
    CopyStored(call, 0, 0);
    return CopyStored(call, 2, 1);
  }
  const auto update = [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SgdUpdate)(constants, piece);
  };
  ForEachPiece(call, kSgdUpdateInputs,
               {.first_number = first_number, .gain = GainOf(call, constants)}, update);
}

void SgdUpdatePlainCpu::RunRange(const KernelCall& call, size_t first_number) {
  const SgdConstants constants{.learning_rate = call.In<float>(2)[0],
                               .weight_decay = Attribute(call, "weight_decay"),
                               .factor = SgdFactorOf(call, kSgdPlainInputs)};
  if (constants.factor == 0) return CopyStored(call, 0, 0);
  const FourRounding rounding{.first_number = first_number};
  ForEachPiece(call, kSgdPlainInputs, rounding, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SgdUpdatePlain)(constants, piece);
  });
}

void SgdGatherCpu::RunRange(const KernelCall& call, size_t first_number) {
  const SgdConstants constants{.momentum = Attribute(call, "momentum"),
                               .weight_decay = Attribute(call, "weight_decay"),
                               .factor = SgdFactorOf(call, kSgdGatherInputs)};
  const auto seen = static_cast<uint32_t>(call.In<int32_t>(3)[0]);
  const bool skipped = constants.factor == 0;
  if (skipped && seen != 0) return CopyStored(call, 2, 0);
  const FourRounding rounding{.occasion = seen + 1, .first_number = first_number};
  ForEachPiece(call, kSgdGatherInputs, rounding, [&](const NumberPiece& piece) {
    if (seen != 0) return HWY_DYNAMIC_DISPATCH(SgdGatherMore)(constants, piece);
    if (skipped) return HWY_DYNAMIC_DISPATCH(SgdDecay)(constants, piece);
    HWY_DYNAMIC_DISPATCH(SgdGatherFirst)(constants, piece);
  });
}

void SgdApplyCpu::Run(const KernelCall& call) {
  const SgdConstants constants{.learning_rate = call.In<float>(2)[0]};
  ForEachPiece(call, kSgdApplyInputs, {}, [&](const NumberPiece& piece) {
    HWY_DYNAMIC_DISPATCH(SgdApply)(constants, piece);
  });
}

void SgdApplyFeedbackCpu::Run(const KernelCall& call) {
  const SgdConstants constants{.learning_rate = call.In<float>(2)[0],
                               .momentum = Attribute(call, "momentum")};
  const auto apply = [&](const NumberPiece& piece) {
    // Momentum that stays in place needs no copy.
    if (piece.out[1] != piece.in[1]) {
      std::memcpy(piece.out[1], piece.in[1], piece.count * sizeof(float));
    }
    HWY_DYNAMIC_DISPATCH(SgdApply)(constants, piece);
  };
  ForEachPiece(call, kSgdApplyInputs, {.gain = GainOf(call, constants)}, apply);
}

}  // namespace thimble
#endif  // HWY_ONCE
