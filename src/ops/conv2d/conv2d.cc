// conv2d: y = x convolved with w, no bias; NHWC. Both gradients are products of dy with the other
// input. conv2d_add: the same plus an array of y's shape, a residual network's shortcut, in one
// pass.
#include "thimble/ops/conv2d/conv2d.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/conv2d/cuda/conv2d_cuda.h"
#include "thimble/ops/conv2d/geometry.h"
#include "thimble/ops/conv2d/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

using GeometryFunction = Result<Conv2dGeometry> (*)(const OpCall&);

// Shape rule: one output, with this shape of the geometry.
ShapeFunction ShapeFrom(GeometryFunction geometry_of, Shape (Conv2dGeometry::*shape)() const) {
  return [=](const OpCall& call) -> Result<std::vector<Shape>> {
    THIMBLE_ASSIGN_OR_RETURN(const Conv2dGeometry g, geometry_of(call));
    return std::vector<Shape>{(g.*shape)()};
  };
}

FlopFunction FlopsFrom(GeometryFunction geometry_of) {
  return [=](const OpCall& call) { return geometry_of(call).value().flops(); };
}

void Conv2dGradient(GradientBuilder& g) {
  const int64_t stride = g.attributes().Int("stride");
  const int64_t padding = g.attributes().Int("padding");
  // The weight gradient first: x is then free before dx is allocated.
  if (g.Wants("w")) {
    const Shape& w = g.ShapeOf(g.In("w"));
    const Attributes attributes = {
        {"stride", stride}, {"padding", padding}, {"kernel_height", w[1]}, {"kernel_width", w[2]}};
    g.AddTo("w", g.Emit("conv2d_grad_weight", {g.In("x"), g.GradOf("y")}, attributes)[0]);
  }
  if (g.Wants("x")) {
    const Shape& x = g.ShapeOf(g.In("x"));
    const Attributes attributes = {
        {"stride", stride}, {"padding", padding}, {"height", x[1]}, {"width", x[2]}};
    g.AddTo("x", g.Emit("conv2d_grad_input", {g.In("w"), g.GradOf("y")}, attributes)[0]);
  }
}

Result<std::vector<Shape>> Conv2dAddShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Conv2dGeometry g, Conv2dGeometryOf(call));
  THIMBLE_TRY(RequireShape("other", call.inputs[2], g.y_shape()));
  return std::vector<Shape>{g.y_shape()};
}

void Conv2dAddGradient(GradientBuilder& g) {
  g.AddTo("other", g.GradOf("y"));
  Conv2dGradient(g);
}

}  // namespace

OpDef Make_conv2d() {
  return OpDef("conv2d")
      .Input("x")
      .FilterInput("w")
      .Output("y")
      .Attribute("stride", int64_t{1})
      .Attribute("padding", int64_t{0})
      .ShapeRule(ShapeFrom(&Conv2dGeometryOf, &Conv2dGeometry::y_shape))
      .Gradient(&Conv2dGradient)
      .Flops(FlopsFrom(&Conv2dGeometryOf))
      .CpuKernel<Conv2dWinogradCpu>("Conv2dWinogradCpu")
      .CpuKernel<Conv2dCpu>("Conv2dCpu")
      .CudaKernel<Conv2dShortCuda>("Conv2dShortCuda")
      .CudaKernel<Conv2dFp32Cuda>("Conv2dFp32Cuda")
      .CudaKernel<Conv2dPlainFp32Cuda>("Conv2dPlainFp32Cuda")
      .CudaKernel<Conv2dMixedCuda>("Conv2dMixedCuda")
      .CudaKernel<Conv2dTf32Cuda>("Conv2dTf32Cuda")
      .CudaKernel<Conv2dPlainCuda>("Conv2dPlainCuda")
      .Reference<Conv2dReference>();
}

OpDef Make_conv2d_add() {
  return OpDef("conv2d_add")
      .Input("x")
      .FilterInput("w")
      .Input("other")
      .Output("y")
      .Attribute("stride", int64_t{1})
      .Attribute("padding", int64_t{0})
      .ShapeRule(&Conv2dAddShapes)
      .Gradient(&Conv2dAddGradient)
      .Flops([](const OpCall& call) {
        return Conv2dGeometryOf(call).value().flops() + call.outputs[0].elements();
      })
      .CpuKernel<Conv2dAddWinogradCpu>("Conv2dAddWinogradCpu")
      .CpuKernel<Conv2dAddCpu>("Conv2dAddCpu")
      .CudaKernel<Conv2dAddShortCuda>("Conv2dAddShortCuda")
      .CudaKernel<Conv2dAddFp32Cuda>("Conv2dAddFp32Cuda")
      .CudaKernel<Conv2dAddPlainFp32Cuda>("Conv2dAddPlainFp32Cuda")
      .CudaKernel<Conv2dAddMixedCuda>("Conv2dAddMixedCuda")
      .CudaKernel<Conv2dAddTf32Cuda>("Conv2dAddTf32Cuda")
      .CudaKernel<Conv2dAddPlainCuda>("Conv2dAddPlainCuda")
      .Reference<Conv2dAddReference>();
}

OpDef Make_conv2d_grad_weight() {
  return OpDef("conv2d_grad_weight")
      .Input("x")
      .Input("dy")
      .Output("dw")
      .Attribute("stride", int64_t{1})
      .Attribute("padding", int64_t{0})
      .Attribute("kernel_height", int64_t{1})
      .Attribute("kernel_width", int64_t{1})
      .ShapeRule(ShapeFrom(&Conv2dGradWeightGeometryOf, &Conv2dGeometry::w_shape))
      .NoGradient("second derivatives are not supported")
      .Flops(FlopsFrom(&Conv2dGradWeightGeometryOf))
      .CpuKernel<Conv2dGradWeightWinogradCpu>("Conv2dGradWeightWinogradCpu")
      .CpuKernel<Conv2dGradWeightCpu>("Conv2dGradWeightCpu")
      .CudaKernel<Conv2dGradWeightShortCuda>("Conv2dGradWeightShortCuda")
      .CudaKernel<Conv2dGradWeightFp32Cuda>("Conv2dGradWeightFp32Cuda")
      .CudaKernel<Conv2dGradWeightPlainFp32Cuda>("Conv2dGradWeightPlainFp32Cuda")
      .CudaKernel<Conv2dGradWeightTf32Cuda>("Conv2dGradWeightTf32Cuda")
      .CudaKernel<Conv2dGradWeightPlainCuda>("Conv2dGradWeightPlainCuda")
      .Reference<Conv2dGradWeightReference>();
}

OpDef Make_conv2d_grad_input() {
  return OpDef("conv2d_grad_input")
      .FilterInput("w")
      .Input("dy")
      .Output("dx")
      .Attribute("stride", int64_t{1})
      .Attribute("padding", int64_t{0})
      .Attribute("height", int64_t{1})
      .Attribute("width", int64_t{1})
      .ShapeRule(ShapeFrom(&Conv2dGradInputGeometryOf, &Conv2dGeometry::x_shape))
      .NoGradient("second derivatives are not supported")
      .Flops(FlopsFrom(&Conv2dGradInputGeometryOf))
      .CpuKernel<Conv2dGradInputWinogradCpu>("Conv2dGradInputWinogradCpu")
      .CpuKernel<Conv2dGradInputCpu>("Conv2dGradInputCpu")
      .CudaKernel<Conv2dGradInputShortCuda>("Conv2dGradInputShortCuda")
      .CudaKernel<Conv2dGradInputFp32Cuda>("Conv2dGradInputFp32Cuda")
      .CudaKernel<Conv2dGradInputPlainFp32Cuda>("Conv2dGradInputPlainFp32Cuda")
      .CudaKernel<Conv2dGradInputMixedCuda>("Conv2dGradInputMixedCuda")
      .CudaKernel<Conv2dGradInputTf32Cuda>("Conv2dGradInputTf32Cuda")
      .CudaKernel<Conv2dGradInputPlainCuda>("Conv2dGradInputPlainCuda")
      .Reference<Conv2dGradInputReference>();
}

}  // namespace thimble
