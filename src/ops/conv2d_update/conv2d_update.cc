// conv2d_grad_weight and an op that uses the gradient as one op, so that no array of gradients
// exists: conv2d_accumulate, conv2d_sgd_gather, conv2d_sgd_update and conv2d_sgd_update_plain.
// Inputs are x, dy and those of the second op without the gradient; outputs are those of the second
// op; attributes are those of both. `gradient_type` is the type in which the gradient would be
// stored between the two ops: it is rounded to that type, so that the results are the same. But an
// update never gets an infinite gradient from a finite sum: nothing could check an array that does
// not exist, so such a gradient becomes the largest number of the type.
#include "thimble/ops/conv2d_update/conv2d_update.h"

#include <memory>
#include <vector>

#include "thimble/graph/op_def.h"
#include "thimble/ops/composed_op.h"
#include "thimble/ops/conv2d/reference.h"
#include "thimble/ops/conv2d_update/cuda/conv2d_update_cuda.h"

namespace thimble {

OpDef Make_conv2d_grad_weight();
OpDef Make_accumulate();
OpDef Make_sgd_gather();
OpDef Make_sgd_update();
OpDef Make_sgd_update_plain();

namespace {

// The inputs of the second op: those of both with the gradient instead of x and dy.
template <class T>
std::vector<T> SecondInputs(std::span<const T> inputs, const T& gradient) {
  std::vector<T> second(inputs.begin() + kConv2dInputs, inputs.end());
  second.insert(second.begin() + kUpdateGradientInput, gradient);
  return second;
}

template <OpDef (*kMakeSecond)()>
struct Conv2dUpdateReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    static const ReferenceSet second = kMakeSecond().reference();
    const OpCall& op = call.op;
    const Shape dw_shape = Conv2dGradWeightGeometryOf(op).value().w_shape();
    std::vector<T> dw(static_cast<size_t>(dw_shape.elements()));
    void* const dw_data = dw.data();
    Conv2dGradWeightReference::Run<T>({{op.inputs, {&dw_shape, 1}, op.attributes},
                                       call.inputs.first(kConv2dInputs),
                                       {&dw_data, 1}});
    const auto shapes = SecondInputs<Shape>(op.inputs, dw_shape);
    const auto inputs = SecondInputs<const void*>(call.inputs, dw.data());
    Select<T>(second)({{shapes, op.outputs, op.attributes}, inputs, call.outputs});
  }
};

// The definitions of both ops, and the calls of them that a call of both consists of.
class Conv2dAndUpdate {
 public:
  explicit Conv2dAndUpdate(OpDef second)
      : first_(Make_conv2d_grad_weight()), second_(std::move(second)) {}

  const OpDef& first() const { return first_; }
  const OpDef& second() const { return second_; }

  Result<std::vector<Shape>> Shapes(const OpCall& call) const {
    THIMBLE_ASSIGN_OR_RETURN(const auto dw, first_.InferShapes(call));
    const auto inputs = SecondInputs<Shape>(call.inputs, dw[0]);
    return second_.InferShapes({inputs, {}, call.attributes});
  }
  int64_t Flops(const OpCall& call) const {
    const std::vector<Shape> dw = first_.InferShapes(call).value();
    const auto inputs = SecondInputs<Shape>(call.inputs, dw[0]);
    return first_.CountFlops({call.inputs, dw, call.attributes}) +
           second_.CountFlops({inputs, call.outputs, call.attributes});
  }

 private:
  OpDef first_;
  OpDef second_;
};

void AddPorts(OpDef& op, const Conv2dAndUpdate& both) {
  for (const OpPort& port : both.first().inputs()) AddInput(op, port);
  const OpDef& second = both.second();
  for (size_t i = 0; i < second.inputs().size(); ++i) {
    if (i != kUpdateGradientInput) AddInput(op, second.inputs()[i], second.AcceptsInputs(i));
  }
  for (const OpPort& port : second.outputs()) AddOutput(op, port);
}

// `conv2d_` + the name of the second op, without kernels.
OpDef Conv2dThen(OpDef second) {
  const auto both = std::make_shared<const Conv2dAndUpdate>(std::move(second));
  OpDef op("conv2d_" + both->second().name());
  AddPorts(op, *both);
  AddReuses(op, both->second());
  AddAttributes(op, both->first());
  AddAttributes(op, both->second());
  op.Attribute("gradient_type", static_cast<int64_t>(DType::kF32));
  return op.ShapeRule([both](const OpCall& call) { return both->Shapes(call); })
      .Flops([both](const OpCall& call) { return both->Flops(call); })
      .NoGradient(both->second().no_gradient_reason());
}

}  // namespace

OpDef Make_conv2d_accumulate() {
  return Conv2dThen(Make_accumulate())
      .CpuKernel<Conv2dAccumulateCpu>("Conv2dAccumulateCpu")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateShort, SecondOp::kAccumulate>>(
          "Conv2dAccumulateShortCuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateFp32, SecondOp::kAccumulate>>(
          "Conv2dAccumulateFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlainFp32, SecondOp::kAccumulate>>(
          "Conv2dAccumulatePlainFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateTf32, SecondOp::kAccumulate>>(
          "Conv2dAccumulateTf32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlain, SecondOp::kAccumulate>>(
          "Conv2dAccumulatePlainCuda")
      .Reference<Conv2dUpdateReference<&Make_accumulate>>();
}

OpDef Make_conv2d_sgd_gather() {
  return Conv2dThen(Make_sgd_gather())
      .CpuKernel<Conv2dSgdGatherCpu>("Conv2dSgdGatherCpu")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateShort, SecondOp::kSgdGather>>(
          "Conv2dSgdGatherShortCuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateFp32, SecondOp::kSgdGather>>(
          "Conv2dSgdGatherFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlainFp32, SecondOp::kSgdGather>>(
          "Conv2dSgdGatherPlainFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateTf32, SecondOp::kSgdGather>>(
          "Conv2dSgdGatherTf32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlain, SecondOp::kSgdGather>>(
          "Conv2dSgdGatherPlainCuda")
      .Reference<Conv2dUpdateReference<&Make_sgd_gather>>();
}

OpDef Make_conv2d_sgd_update() {
  return Conv2dThen(Make_sgd_update())
      .CpuKernel<Conv2dSgdUpdateCpu>("Conv2dSgdUpdateCpu")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateShort, SecondOp::kSgdUpdate>>(
          "Conv2dSgdUpdateShortCuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateFp32, SecondOp::kSgdUpdate>>(
          "Conv2dSgdUpdateFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlainFp32, SecondOp::kSgdUpdate>>(
          "Conv2dSgdUpdatePlainFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateTf32, SecondOp::kSgdUpdate>>(
          "Conv2dSgdUpdateTf32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlain, SecondOp::kSgdUpdate>>(
          "Conv2dSgdUpdatePlainCuda")
      .Reference<Conv2dUpdateReference<&Make_sgd_update>>();
}

OpDef Make_conv2d_sgd_update_plain() {
  return Conv2dThen(Make_sgd_update_plain())
      .CpuKernel<Conv2dSgdUpdatePlainCpu>("Conv2dSgdUpdatePlainCpu")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateShort, SecondOp::kSgdUpdatePlain>>(
          "Conv2dSgdUpdatePlainShortCuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateFp32, SecondOp::kSgdUpdatePlain>>(
          "Conv2dSgdUpdatePlainFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlainFp32, SecondOp::kSgdUpdatePlain>>(
          "Conv2dSgdUpdatePlainPlainFp32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdateTf32, SecondOp::kSgdUpdatePlain>>(
          "Conv2dSgdUpdatePlainTf32Cuda")
      .CudaKernel<Conv2dUpdateCuda<Conv2dUpdatePlain, SecondOp::kSgdUpdatePlain>>(
          "Conv2dSgdUpdatePlainPlainCuda")
      .Reference<Conv2dUpdateReference<&Make_sgd_update_plain>>();
}

}  // namespace thimble
