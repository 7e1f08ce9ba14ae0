// Loss scaling: gradients in 16 bits have few exponents, so backward starts from a larger number
// than the gradient of the loss, and updates divide by it. The state "loss_scale" has the entries
// of LossScaleEntry.
//   scale_loss: where backward starts: weight * scale
//   check_gradients: gradient_factor = 1 / scale, smaller if the norm of all gradients is above
//     `clip`; 0 if a gradient is not finite, which the state notes
//   adjust_loss_scale: after an update: the scale shrinks if a gradient was not finite, and grows
//     after `interval` updates in which all were
#include "thimble/ops/loss_scale/loss_scale.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

struct ScaleLossReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    call.Out(0)[0] = call.In(0)[0] * call.In(1)[kScale];
  }
};

struct CheckGradientsReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    double squares = 0;
    for (size_t input = 1; input < call.op.inputs.size(); ++input) {
      for (int64_t i = 0; i < call.op.inputs[input].elements(); ++i) {
        squares += RealPart(call.In(input)[i]) * RealPart(call.In(input)[i]);
      }
    }
    const double factor =
        GradientFactor(squares, RealPart(call.In(0)[kScale]), call.op.attributes.Float("clip"));
    call.Out(0)[0] = T(factor);
    for (int entry = 0; entry < kNumScaleEntries; ++entry) call.Out(1)[entry] = call.In(0)[entry];
    if (factor == 0) call.Out(1)[kNotFinite] = call.Out(1)[kNotFinite] + T(1);
  }
};

struct AdjustLossScaleReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    float state[kNumScaleEntries];
    float next[kNumScaleEntries];
    for (int entry = 0; entry < kNumScaleEntries; ++entry) {
      state[entry] = static_cast<float>(RealPart(call.In(0)[entry]));
    }
    RuleOf(call.op.attributes).Adjust(state, next);
    for (int entry = 0; entry < kNumScaleEntries; ++entry) call.Out(0)[entry] = T(next[entry]);
  }
};

constexpr std::string_view kState = "loss_scale";

Result<void> CheckRule(const Attributes& attributes) {
  THIMBLE_TRY(RequireAtLeast("interval", attributes.Int("interval"), 0));
  const LossScaleRule rule = RuleOf(attributes);
  if (!(rule.factor > 1) || !(rule.floor > 0) || !(rule.ceiling >= rule.floor)) {
    return BadInput("expected a factor above 1 and 0 < floor <= ceiling");
  }
  return {};
}

}  // namespace

LossScaleRule RuleOf(const Attributes& attributes) {
  return {static_cast<float>(attributes.Int("interval")),
          static_cast<float>(attributes.Float("factor")),
          static_cast<float>(attributes.Float("floor")),
          static_cast<float>(attributes.Float("ceiling"))};
}

OpDef Make_scale_loss() {
  return OpDef("scale_loss")
      .Input("weight", DType::kF32)
      .Input("loss_scale", DType::kF32)
      .Output("y", DType::kF32)
      .ShapeRule([](const OpCall& call) -> Result<std::vector<Shape>> {
        THIMBLE_TRY(RequireShape("weight", call.inputs[0], Shape{1}));
        THIMBLE_TRY(RequireShape(kState, call.inputs[1], Shape{kNumScaleEntries}));
        return std::vector<Shape>{Shape{1}};
      })
      .NoGradient("backward starts here")
      .Flops(PerOutputElement(1))
      .CudaKernel<ScaleLossCuda>("ScaleLossCuda")
      .Reference<ScaleLossReference>();
}

OpDef Make_check_gradients() {
  return OpDef("check_gradients")
      .Input("loss_scale", DType::kF32)
      .InputList("gradients")
      .Output("gradient_factor", DType::kF32)
      .Output("next_loss_scale", DType::kF32)
      .Attribute("clip", 0.0)
      .ShapeRule([](const OpCall& call) -> Result<std::vector<Shape>> {
        THIMBLE_TRY(RequireShape(kState, call.inputs[0], Shape{kNumScaleEntries}));
        const double clip = call.attributes.Float("clip");
        if (!(clip >= 0)) return BadInput(fmt::format("clip is {}, expected at least 0", clip));
        return std::vector<Shape>{Shape{1}, Shape{kNumScaleEntries}};
      })
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_loss_scale", "loss_scale")
      .Flops([](const OpCall& call) {
        int64_t elements = 0;
        for (const Shape& gradient : call.inputs.subspan(1)) elements += gradient.elements();
        return 2 * elements;
      })
      .CpuKernel<CheckGradientsCpu>("CheckGradientsCpu")
      .CudaKernel<CheckGradientsCuda>("CheckGradientsCuda")
      .Reference<CheckGradientsReference>();
}

OpDef Make_adjust_loss_scale() {
  return OpDef("adjust_loss_scale")
      .Input("loss_scale", DType::kF32)
      .Output("next_loss_scale", DType::kF32)
      .Attribute("interval", int64_t{2000})
      .Attribute("factor", 2.0)
      .Attribute("floor", 1e-4)
      .Attribute("ceiling", 0x1p24)
      .ShapeRule([](const OpCall& call) -> Result<std::vector<Shape>> {
        THIMBLE_TRY(RequireShape(kState, call.inputs[0], Shape{kNumScaleEntries}));
        THIMBLE_TRY(CheckRule(call.attributes));
        return std::vector<Shape>{call.inputs[0]};
      })
      .NoGradient("updates are not differentiated")
      .OutputMayReuse("next_loss_scale", "loss_scale")
      .Flops(PerOutputElement(1))
      .CudaKernel<AdjustLossScaleCuda>("AdjustLossScaleCuda")
      .Reference<AdjustLossScaleReference>();
}

}  // namespace thimble
