// softmax_cross_entropy: the loss of a classifier, sum over the batch of -log
// softmax(logits)[label], divided by `divisor` (the number of rows gives the mean; with
// microbatches, too: what share of the whole batch they are comes in with `dloss`). `correct`
// counts the rows whose first largest logit is the label's. A label out of range counts as wrong
// and makes the loss NaN.
#include "thimble/graph/op_def.h"
#include "thimble/ops/shape_rules.h"
#include "thimble/ops/softmax_cross_entropy/reference.h"
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy_cpu.h"
#include "thimble/ops/softmax_cross_entropy/softmax_cross_entropy_cuda.h"

namespace thimble {
namespace {

Result<void> CheckLogitsAndLabels(const OpCall& call) {
  THIMBLE_TRY(RequireRank("logits", call.inputs[0], 2, "(B, N)"));
  THIMBLE_TRY(RequireShape("labels", call.inputs[1], Shape{call.inputs[0][0]}));
  const double divisor = call.attributes.Float("divisor");
  if (!(divisor > 0)) return BadInput(fmt::format("divisor is {}, expected > 0", divisor));
  return {};
}

Result<std::vector<Shape>> SoftmaxCrossEntropyShapes(const OpCall& call) {
  THIMBLE_TRY(CheckLogitsAndLabels(call));
  return std::vector<Shape>{Shape{1}, Shape{1}};
}

Result<std::vector<Shape>> SoftmaxCrossEntropyGradShapes(const OpCall& call) {
  THIMBLE_TRY(CheckLogitsAndLabels(call));
  THIMBLE_TRY(RequireShape("dloss", call.inputs[2], Shape{1}));
  return std::vector<Shape>{call.inputs[0]};
}

}  // namespace

OpDef Make_softmax_cross_entropy() {
  return OpDef("softmax_cross_entropy")
      .Input("logits")
      .Input("labels", DType::kI32)
      .Output("loss")
      .Output("correct", DType::kI32)
      .Attribute("divisor", 1.0)
      .ShapeRule(SoftmaxCrossEntropyShapes)
      .Gradient([](GradientBuilder& g) {
        g.AddTo("logits", g.Emit("softmax_cross_entropy_grad",
                                 {g.In("logits"), g.In("labels"), g.GradOf("loss")},
                                 {{"divisor", g.attributes().Float("divisor")}})[0]);
      })
      // Comparing, shifting, the exponential (about 15) and its sum.
      .Flops(PerInputElement(18))
      .Kernels({
#include "thimble/ops/softmax_cross_entropy/kernels.inc"
      })
      .Reference<SoftmaxCrossEntropyReference>();
}

OpDef Make_softmax_cross_entropy_grad() {
  return OpDef("softmax_cross_entropy_grad")
      .Input("logits")
      .Input("labels", DType::kI32)
      .Input("dloss")
      .Output("dlogits")
      .Attribute("divisor", 1.0)
      .ShapeRule(SoftmaxCrossEntropyGradShapes)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dlogits", "logits")
      .Flops(PerInputElement(19))
      .Kernels({
#include "thimble/ops/softmax_cross_entropy/grad_kernels.inc"
      })
      .Reference<SoftmaxCrossEntropyGradReference>();
}

}  // namespace thimble
