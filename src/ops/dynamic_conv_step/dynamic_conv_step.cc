// dynamic_conv_step: what a causal dynamic_conv computes at the newest position of each of N
// hypotheses of B sentences, for beam search. x (B, N, C) and logits (B, N, H * K), K at least 2,
// belong to position t, the input `step`; a negative step counts as 0. The inputs of the K - 1
// positions before are in `history` (K - 1, B, N, C):
//   y[b, n, c] = w[K - 1] * x[b, n, c]
//              + sum over d of w[K - 2 - d] * history[(t - 1 - d) mod (K - 1), b, a[d], c]
// where w = softmax over the K logits of (b, n, h(c)), as in dynamic_conv, and a = ancestors[b, n]:
// ancestors (B, N, P), P at least K - 1, say which hypothesis at position t - 1 - d this one
// descends from. Positions before 0 count as zero, and neither their slots nor their ancestors are
// read; softmax is over all K logits nevertheless. An ancestor outside [0, N) makes y of its
// hypothesis NaN.
//
// history_next is the history with x in slot t mod (K - 1), which held position t - (K - 1). Other
// slots stay as they are. It may overwrite the history.
//
// With the hypotheses' own paths as sentences, dynamic_conv gives the same bits.
#include "thimble/ops/dynamic_conv_step/dynamic_conv_step.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/dynamic_conv_step/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

Result<void> CheckAncestors(const Shape& ancestors, const Shape& x, int64_t slots) {
  THIMBLE_TRY(RequireRank("ancestors", ancestors, 3, "(B, N, P)"));
  THIMBLE_TRY(RequireShape("ancestors", ancestors, Shape{x[0], x[1], ancestors[2]}));
  if (ancestors[2] >= slots) return {};
  return BadInput(fmt::format("'ancestors' has shape {}, expected at least {} for each hypothesis",
                              ToString(ancestors), slots));
}

Result<std::vector<Shape>> DynamicConvStepShapes(const OpCall& call) {
  const Shape& x = call.inputs[0];
  const Shape& logits = call.inputs[1];
  const int64_t heads = call.attributes.Int("heads");
  THIMBLE_TRY(RequireRank("x", x, 3, "(B, N, C)"));
  THIMBLE_TRY(RequireRank("logits", logits, 3, "(B, N, H * K)"));
  THIMBLE_TRY(RequireTapLogits(x, logits, heads));
  THIMBLE_TRY(RequireAtLeast("number of taps", logits[2] / heads, 2));
  const int64_t slots = logits[2] / heads - 1;
  THIMBLE_TRY(RequireShape("history", call.inputs[2], Shape{slots, x[0], x[1], x[2]}));
  THIMBLE_TRY(CheckAncestors(call.inputs[3], x, slots));
  THIMBLE_TRY(RequireShape("step", call.inputs[4], Shape{1}));
  return std::vector<Shape>{x, call.inputs[2]};
}

// Of a multiply-add for each tap of each channel, and for each logit its exponential (about 15),
// sums and products, as in dynamic_conv.
int64_t StepFlops(const OpCall& call) {
  const int64_t taps = call.inputs[1][2] / call.attributes.Int("heads");
  return 2 * taps * call.inputs[0].elements() + 19 * call.inputs[1].elements();
}

}  // namespace

OpDef Make_dynamic_conv_step() {
  return OpDef("dynamic_conv_step")
      .Input("x")
      .Input("logits")
      .Input("history")
      .Input("ancestors", DType::kI32)
      .Input("step", DType::kI32)
      .Output("y")
      .Output("history_next")
      .Attribute("heads", int64_t{1})
      .ShapeRule(DynamicConvStepShapes)
      .NoGradient("it only serves decoding")
      .OutputMayReuse("history_next", "history")
      .Flops(StepFlops)
      .CpuKernel<DynamicConvStepCpu>("DynamicConvStepCpu")
      .CudaKernel<DynamicConvStepCuda>("DynamicConvStepCuda")
      .Reference<DynamicConvStepReference>();
}

}  // namespace thimble
