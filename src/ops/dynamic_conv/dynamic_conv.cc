// dynamic_conv: a convolution along the positions of a sentence whose weights are computed anew for
// each position: for each position and head, a softmax over K logits, one for each tap, which all
// channels of the head share.
//   y[b, t, c] = sum over k of w[b, t, h(c), k] * x[b, t + k - P, c],   h(c) = c / (C / H)
// P is K / 2 (centred, K odd) or, with causal=1, K - 1. Positions outside the sentence, [0,
// lengths[b]), count as zero; softmax is over all K logits nevertheless. With rate > 0 dropout is
// applied to the weights (weight_dropout.h): the weight of tap k of position t and head h is
// element (t * H + h) * K + k of its sample, so that draws depend neither on padding nor on how a
// batch is divided.
//
// y, dx and dlogits are zero at padded positions, whatever the inputs hold there. A length outside
// [0, T] makes the outputs of its sentence NaN.
//
// Backward rebuilds the weights from the logits: only x and logits are kept, and no T x T matrix is
// ever made. No bit of a sentence's outputs depends on other sentences or on padding.
#include "thimble/ops/dynamic_conv/dynamic_conv.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/dropout/dropout_rules.h"
#include "thimble/ops/dynamic_conv/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// Checks heads and causal, and that logits (B, T, H * K) fit x (B, T, C).
Result<void> CheckTaps(const OpCall& call) {
  const Shape& logits = call.inputs[1];
  const int64_t heads = call.attributes.Int("heads");
  THIMBLE_TRY(RequireTapLogits(call.inputs[0], logits, heads));
  const int64_t taps = logits[2] / heads;
  if (call.attributes.Int("causal") == 0 && taps % 2 == 0) {
    return BadInput(
        fmt::format("got {} taps, expected an odd number around each position (any "
                    "number with causal=1)",
                    taps));
  }
  return {};
}

Result<void> CheckDynamicConv(const OpCall& call, size_t samples_input) {
  const Shape& x = call.inputs[0];
  THIMBLE_TRY(RequireRank("x", x, 3, "(B, T, C)"));
  THIMBLE_TRY(RequireRank("logits", call.inputs[1], 3, "(B, T, H * K)"));
  THIMBLE_TRY(CheckTaps(call));
  THIMBLE_TRY(RequireShape("lengths", call.inputs[2], Shape{x[0]}));
  THIMBLE_TRY(CheckWeightDropout(call, samples_input, x[0]));
  const int64_t weights = x[1] * call.inputs[1][2];
  if (call.attributes.Float("rate") > 0 && weights > kMaxDropoutElements) {
    return BadInput(
        fmt::format("a sample has {} weights, dropout takes {}", weights, kMaxDropoutElements));
  }
  return {};
}

Result<std::vector<Shape>> DynamicConvShapes(const OpCall& call) {
  THIMBLE_TRY(CheckDynamicConv(call, 3));
  return std::vector<Shape>{call.inputs[0]};
}

Result<std::vector<Shape>> DynamicConvGradShapes(const OpCall& call) {
  THIMBLE_TRY(CheckDynamicConv(call, 4));
  THIMBLE_TRY(RequireShape("dy", call.inputs[3], call.inputs[0]));
  return std::vector<Shape>{call.inputs[0], call.inputs[1]};
}

// `passes` over all taps of all channels, 2 operations each, and for each logit its exponential
// (about 15), sums and products.
FlopFunction TapFlops(int64_t passes, int64_t per_logit) {
  return [=](const OpCall& call) {
    const int64_t taps = call.inputs[1][2] / call.attributes.Int("heads");
    return passes * 2 * taps * call.inputs[0].elements() + per_logit * call.inputs[1].elements();
  };
}

OpDef MakeDynamicConv(std::string name) {
  return OpDef(std::move(name))
      .Input("x")
      .Input("logits")
      .Input("lengths", DType::kI32)
      .Attribute("heads", int64_t{1})
      .Attribute("causal", int64_t{0});
}

}  // namespace

OpDef Make_dynamic_conv() {
  OpDef op = MakeDynamicConv("dynamic_conv");
  return AddWeightDropout(op)
      .Output("y")
      .ShapeRule(DynamicConvShapes)
      .Gradient([](GradientBuilder& g) {
        const auto gradients =
            g.Emit("dynamic_conv_grad",
                   WithDraws(g, {g.In("x"), g.In("logits"), g.In("lengths"), g.GradOf("y")}),
                   g.attributes());
        g.AddTo("x", gradients[0]);
        g.AddTo("logits", gradients[1]);
      })
      .OutputMayReuse("y", "x")
      .Flops(TapFlops(1, 19))
      .CpuKernel<DynamicConvCpu>("DynamicConvCpu")
      .CudaKernel<DynamicConvCuda>("DynamicConvCuda")
      .Reference<DynamicConvReference>();
}

OpDef Make_dynamic_conv_grad() {
  OpDef op = MakeDynamicConv("dynamic_conv_grad").Input("dy");
  return AddWeightDropout(op)
      .Output("dx")
      .Output("dlogits")
      .ShapeRule(DynamicConvGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "x")
      .OutputMayReuse("dlogits", "logits")
      .Flops(TapFlops(2, 24))
      .CpuKernel<DynamicConvGradCpu>("DynamicConvGradCpu")
      .CudaKernel<DynamicConvGradShortCuda>("DynamicConvGradShortCuda")
      .CudaKernel<DynamicConvGradCuda>("DynamicConvGradCuda")
      .Reference<DynamicConvGradReference>();
}

}  // namespace thimble
