// norm_conv2d: a batch norm whose mean and variance are known (batch_norm_statistics), its ReLU,
// and a convolution of the result, which takes no memory. The same for all other ops that read the
// input of a convolution: `norm_` + the name of the op. `norm_type` is the type in which the norm's
// output would be stored: it is rounded to that type, so that the results are the same.
//
// norm_conv2d_grad_input: conv2d_grad_input, then batch_norm_grad or, with `other`,
// batch_norm_grad_add. `gradient_type` is the type of the gradient between them.
// norm_conv2d_grad_input_pair: the same for the sum of two convolutions' gradients.
//
// The technique fold-norms puts these ops into graphs that have their gradients already.
#include "thimble/ops/norm_conv2d/norm_conv2d.h"

#include <memory>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"
#include "thimble/ops/composed_op.h"
#include "thimble/ops/conv2d/conv2d.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d_update/conv2d_update.h"
#include "thimble/ops/norm_conv2d/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {

OpDef Make_conv2d();
OpDef Make_conv2d_accumulate();
OpDef Make_conv2d_add();
OpDef Make_conv2d_grad_weight();
OpDef Make_conv2d_sgd_gather();
OpDef Make_conv2d_sgd_update();
OpDef Make_conv2d_sgd_update_plain();

namespace {

constexpr char kNoGradient[] = "it is made from ops that have their gradients already";

void AddNormConstants(OpDef& op) {
  for (const char* name : {"gamma", "beta", "mean", "variance"}) op.Input(name, DType::kF32);
}

Result<void> CheckNormConstants(const Shape& x, std::span<const Shape> constants) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(x));
  return RequireShapes({"gamma", "beta", "mean", "variance"}, constants, channels);
}

// `norm_` + the name of the op, which reads x first.
template <OpDef (*kMakeConvolution)(), class Kernel>
OpDef ReadingThroughNorm(std::string_view kernel_name) {
  const auto convolution = std::make_shared<const OpDef>(kMakeConvolution());
  OpDef op("norm_" + convolution->name());
  AddInput(op, convolution->inputs()[0]);
  AddNormConstants(op);
  for (size_t i = 1; i < convolution->inputs().size(); ++i) {
    AddInput(op, convolution->inputs()[i], convolution->AcceptsInputs(i));
  }
  for (const OpPort& port : convolution->outputs()) AddOutput(op, port);
  AddReuses(op, *convolution);
  AddAttributes(op, *convolution);
  op.Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("norm_type", static_cast<int64_t>(DType::kF32))
      .ShapeRule([convolution](const OpCall& call) -> Result<std::vector<Shape>> {
        THIMBLE_TRY(CheckNormConstants(call.inputs[0], call.inputs.subspan(1)));
        const auto inputs = WithoutNorm(call.inputs);
        return convolution->InferShapes({inputs, {}, call.attributes});
      })
      .NoGradient(kNoGradient)
      // Normalizing 3, comparing 1.
      .Flops([convolution](const OpCall& call) {
        const auto inputs = WithoutNorm(call.inputs);
        return convolution->CountFlops({inputs, call.outputs, call.attributes}) +
               4 * call.inputs[0].elements();
      });
  op.CpuKernel<Kernel>(kernel_name);
  op.Reference<NormConv2dReference<kMakeConvolution>>();
  return op;
}

}  // namespace

OpDef Make_norm_conv2d() {
  return ReadingThroughNorm<&Make_conv2d, NormConv2dCpu<Conv2dCpu>>("NormConv2dCpu");
}
OpDef Make_norm_conv2d_add() {
  OpDef op = ReadingThroughNorm<&Make_conv2d_add, NormConv2dAddCpu>("NormConv2dAddCpu");
  op.OutputMayReuse("y", "other");
  return op;
}
OpDef Make_norm_conv2d_grad_weight() {
  return ReadingThroughNorm<&Make_conv2d_grad_weight, NormConv2dCpu<Conv2dGradWeightCpu>>(
      "NormConv2dGradWeightCpu");
}
OpDef Make_norm_conv2d_accumulate() {
  return ReadingThroughNorm<&Make_conv2d_accumulate, NormConv2dCpu<Conv2dAccumulateCpu>>(
      "NormConv2dAccumulateCpu");
}
OpDef Make_norm_conv2d_sgd_gather() {
  return ReadingThroughNorm<&Make_conv2d_sgd_gather, NormConv2dCpu<Conv2dSgdGatherCpu>>(
      "NormConv2dSgdGatherCpu");
}
OpDef Make_norm_conv2d_sgd_update() {
  return ReadingThroughNorm<&Make_conv2d_sgd_update, NormConv2dCpu<Conv2dSgdUpdateCpu>>(
      "NormConv2dSgdUpdateCpu");
}
OpDef Make_norm_conv2d_sgd_update_plain() {
  return ReadingThroughNorm<&Make_conv2d_sgd_update_plain, NormConv2dCpu<Conv2dSgdUpdatePlainCpu>>(
      "NormConv2dSgdUpdatePlainCpu");
}

namespace {

Result<std::vector<Shape>> GradientShapes(const OpCall& call, bool pair) {
  const Shape& x = call.inputs[2];
  THIMBLE_TRY(RequireRank("x", x, 4, "(B, H, W, C)"));
  THIMBLE_TRY(CheckNormConstants(x, call.inputs.subspan(3)));
  if (call.attributes.Int("group") != 0) return BadInput("group: only 0, all samples together");
  const auto sources = NormGradientSources(call.attributes);
  for (size_t i = 0; i < (pair ? 2 : 1); ++i) {
    THIMBLE_ASSIGN_OR_RETURN(
        const Conv2dGeometry g,
        GradInputGeometry(call.inputs[sources[i].w], call.inputs[sources[i].w + 1], {x[1], x[2]},
                          sources[i].stride, sources[i].padding));
    THIMBLE_TRY(RequireShape("x", x, g.x_shape()));
  }
  if (!pair && call.inputs.size() > kOtherOfNormGradient) {
    THIMBLE_TRY(RequireShape("other", call.inputs[kOtherOfNormGradient], x));
  }
  return std::vector<Shape>{x, call.inputs[3], call.inputs[3]};
}

// Each convolution twice; those of batch_norm_grad, and ReLU.
int64_t GradientFlops(const OpCall& call, bool pair) {
  const Shape& x = call.inputs[2];
  int64_t flops = 16 * x.elements();
  const auto sources = NormGradientSources(call.attributes);
  for (size_t i = 0; i < (pair ? 2 : 1); ++i) {
    flops += 2 * GradInputGeometry(call.inputs[sources[i].w], call.inputs[sources[i].w + 1],
                                   {x[1], x[2]}, sources[i].stride, sources[i].padding)
                     .value()
                     .flops();
  }
  return flops;
}

// What both ops have: the inputs up to the norm's constants, attributes.
OpDef MakeGradient(const char* name) {
  OpDef op(name);
  op.FilterInput("w").Input("dy").Input("x");
  AddNormConstants(op);
  op.Attribute("stride", int64_t{1}).Attribute("padding", int64_t{0});
  return op.Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("group", int64_t{0})
      .Attribute("gradient_type", static_cast<int64_t>(DType::kF32))
      .NoGradient(kNoGradient);
}

OpDef& AddGradientOutputs(OpDef& op) {
  return op.Output("dx")
      .Output("dgamma", DType::kF32)
      .Output("dbeta", DType::kF32)
      .OutputMayReuse("dx", "x");
}

}  // namespace

OpDef Make_norm_conv2d_grad_input() {
  OpDef op = MakeGradient("norm_conv2d_grad_input");
  op.OptionalInput("other");
  return AddGradientOutputs(op)
      .OutputMayReuse("dx", "other")
      .ShapeRule([](const OpCall& call) { return GradientShapes(call, /*pair=*/false); })
      .Flops([](const OpCall& call) { return GradientFlops(call, /*pair=*/false); })
      .CpuKernel<NormConv2dGradInputCpu>("NormConv2dGradInputCpu")
      .Reference<NormConv2dGradInputReference>();
}

OpDef Make_norm_conv2d_grad_input_pair() {
  OpDef op = MakeGradient("norm_conv2d_grad_input_pair");
  op.FilterInput("second_w").Input("second_dy");
  op.Attribute("second_stride", int64_t{1}).Attribute("second_padding", int64_t{0});
  return AddGradientOutputs(op)
      .ShapeRule([](const OpCall& call) { return GradientShapes(call, /*pair=*/true); })
      .Flops([](const OpCall& call) { return GradientFlops(call, /*pair=*/true); })
      .CpuKernel<NormConv2dGradInputPairCpu>("NormConv2dGradInputPairCpu")
      .Reference<NormConv2dGradInputPairReference>();
}

}  // namespace thimble
