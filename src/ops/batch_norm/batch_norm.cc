// batch_norm: normalizes each channel by the mean and (biased) variance of the batch, then scales
// by gamma and shifts by beta; with relu=1 negative values become zero. Training only;
// batch_norm_eval uses running statistics.
//
// With group=m (ghost batch norm) the batch is split into nearly equal parts of at most m samples,
// and each part is normalized by its own statistics, as if it were a batch; mean and variance are
// then (parts, C).
//
// The backward pass recomputes from x, bit-identically, where ReLU was inactive: it reads neither y
// nor a mask.
#include "thimble/ops/batch_norm/batch_norm.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"
#include "thimble/ops/batch_norm/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

Result<std::vector<Shape>> BatchNormShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(call.inputs[0]));
  THIMBLE_TRY(RequireShapes({"gamma", "beta"}, call.inputs.subspan(1), channels));
  THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, StatisticsShape(call));
  return std::vector<Shape>{call.inputs[0], statistics, statistics};
}

Result<std::vector<Shape>> BatchNormGradAddShapes(const OpCall& call) {
  THIMBLE_TRY(RequireShape("other", call.inputs[6], call.inputs[0]));
  return BatchNormGradShapes(call);
}

// The gradient of x accumulated so far, from the shortcut of a residual network, is added in the
// same pass.
void BatchNormGradient(GradientBuilder& g) {
  std::vector<ValueId> inputs = {g.In("x"),     g.In("gamma"),     g.In("beta"),
                                 g.Out("mean"), g.Out("variance"), g.GradOf("y")};
  const ValueId other = g.SumSoFar("x");
  if (other.valid()) inputs.push_back(other);
  const auto gradients = g.Emit(other.valid() ? "batch_norm_grad_add" : "batch_norm_grad",
                                std::move(inputs), g.attributes());
  if (other.valid()) {
    g.Replace("x", gradients[0]);
  } else {
    g.AddTo("x", gradients[0]);
  }
  g.AddTo("gamma", gradients[1]);
  g.AddTo("beta", gradients[2]);
}

}  // namespace

// Mean and variance never have gradients: only the running statistics use them.
OpDef Make_batch_norm() {
  return OpDef("batch_norm")
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Output("y")
      .Output("mean", DType::kF32)
      .Output("variance", DType::kF32)
      .Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("group", int64_t{0})
      .ShapeRule(BatchNormShapes)
      .Gradient(BatchNormGradient)
      .OutputMayReuse("y", "x")
      .CheapToRebuild()
      .RebuildWith("batch_norm_eval", {"x", "gamma", "beta"}, {"mean", "variance"})
      // Statistics 5 (centre, sum, square, sum, merge), normalizing 3, comparing 1.
      .Flops(PerElementAndRelu(8, 1))
      .CpuKernel<BatchNormCpu>("BatchNormCpu")
      .CudaKernel<BatchNormCuda>("BatchNormCuda")
      .Reference<BatchNormReference>();
}

// Mean and variance alone, for convolutions that normalise x while they read it (norm_conv2d).
OpDef Make_batch_norm_statistics() {
  return OpDef("batch_norm_statistics")
      .Input("x")
      .Output("mean", DType::kF32)
      .Output("variance", DType::kF32)
      .Attribute("group", int64_t{0})
      .ShapeRule([](const OpCall& call) -> Result<std::vector<Shape>> {
        THIMBLE_TRY(ChannelShape(call.inputs[0]));
        THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, StatisticsShape(call));
        return std::vector<Shape>{statistics, statistics};
      })
      .NoGradient("it replaces batch_norm in graphs that have their gradients already")
      .Flops(PerInputElement(5))  // centre, sum, square, sum, merge
      .CpuKernel<BatchNormStatisticsCpu>("BatchNormStatisticsCpu")
      .Reference<BatchNormStatisticsReference>();
}

namespace {

// The common part of both gradient ops.
OpDef MakeGradient(std::string name) {
  return OpDef(std::move(name))
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .Input("dy")
      .Output("dx")
      .Output("dgamma", DType::kF32)
      .Output("dbeta", DType::kF32)
      .Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0})
      .Attribute("group", int64_t{0})
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "x");
}

}  // namespace

OpDef Make_batch_norm_grad() {
  return MakeGradient("batch_norm_grad")
      .ShapeRule(BatchNormGradShapes)
      // Sums 4, combining 5; for ReLU each pass scales, shifts and compares.
      .Flops(PerElementAndRelu(9, 6))
      .CpuKernel<BatchNormGradCpu>("BatchNormGradCpu")
      .CudaKernel<BatchNormGradCuda>("BatchNormGradCuda")
      .Reference<BatchNormGradReference>();
}

// dx = other + the gradient of batch_norm.
OpDef Make_batch_norm_grad_add() {
  return MakeGradient("batch_norm_grad_add")
      .Input("other")
      .ShapeRule(BatchNormGradAddShapes)
      .OutputMayReuse("dx", "other")
      .Flops(PerElementAndRelu(10, 6))
      .CpuKernel<BatchNormGradAddCpu>("BatchNormGradAddCpu")
      .CudaKernel<BatchNormGradAddCuda>("BatchNormGradAddCuda")
      .Reference<BatchNormGradAddReference>();
}

}  // namespace thimble
