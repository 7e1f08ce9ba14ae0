// group_norm: normalizes each sample separately: its channels are divided into groups, and each
// group is normalized by its mean and (biased) variance over all positions; then scales by gamma
// and shifts by beta per channel. With relu=1 negative values become zero. The same in training and
// evaluation.
//
// No bit of a sample's y, mean, variance and dx depends on the other samples of the batch:
// splitting a batch into parts changes only the order in which dgamma and dbeta are summed.
//
// The backward pass recomputes from x, bit-identically, where ReLU was inactive: it reads neither y
// nor a mask.
#include "thimble/ops/group_norm/group_norm.h"

#include "thimble/graph/op_def.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"
#include "thimble/ops/group_norm/reference.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {
namespace {

// (B, groups) for x of shape (B, ..., C).
Result<Shape> GroupStatisticsShape(const OpCall& call) {
  const int64_t groups = call.attributes.Int("groups");
  THIMBLE_TRY(RequireAtLeast("groups", groups, 1));
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(call.inputs[0]));
  if (channels[0] % groups != 0) {
    return BadInput(
        fmt::format("{} channels cannot be divided into {} equal groups", channels[0], groups));
  }
  return Shape{call.inputs[0][0], groups};
}

Result<void> RequireGammaAndBeta(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape channels, ChannelShape(call.inputs[0]));
  THIMBLE_TRY(RequireShape("gamma", call.inputs[1], channels));
  return RequireShape("beta", call.inputs[2], channels);
}

Result<std::vector<Shape>> GroupNormShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, GroupStatisticsShape(call));
  THIMBLE_TRY(RequireGammaAndBeta(call));
  return std::vector<Shape>{call.inputs[0], statistics, statistics};
}

Result<std::vector<Shape>> GroupNormApplyShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(const Shape statistics, GroupStatisticsShape(call));
  THIMBLE_TRY(RequireGammaAndBeta(call));
  THIMBLE_TRY(RequireShape("mean", call.inputs[3], statistics));
  THIMBLE_TRY(RequireShape("variance", call.inputs[4], statistics));
  return std::vector<Shape>{call.inputs[0]};
}

Result<std::vector<Shape>> GroupNormGradShapes(const OpCall& call) {
  THIMBLE_ASSIGN_OR_RETURN(std::vector<Shape> shapes, GroupNormApplyShapes(call));
  THIMBLE_TRY(RequireShape("dy", call.inputs[5], call.inputs[0]));
  shapes.insert(shapes.end(), {call.inputs[1], call.inputs[1]});
  return shapes;
}

Result<std::vector<Shape>> GroupNormGradAddShapes(const OpCall& call) {
  THIMBLE_TRY(RequireShape("other", call.inputs[6], call.inputs[0]));
  return GroupNormGradShapes(call);
}

// The gradient of x accumulated so far, from the shortcut of a residual network, is added in the
// same pass.
void GroupNormGradient(GradientBuilder& g) {
  std::vector<ValueId> inputs = {g.In("x"),     g.In("gamma"),     g.In("beta"),
                                 g.Out("mean"), g.Out("variance"), g.GradOf("y")};
  const ValueId other = g.SumSoFar("x");
  if (other.valid()) inputs.push_back(other);
  const auto gradients = g.Emit(other.valid() ? "group_norm_grad_add" : "group_norm_grad",
                                std::move(inputs), g.attributes());
  if (other.valid()) {
    g.Replace("x", gradients[0]);
  } else {
    g.AddTo("x", gradients[0]);
  }
  g.AddTo("gamma", gradients[1]);
  g.AddTo("beta", gradients[2]);
}

// The common part of all four ops.
OpDef MakeNorm(std::string name) {
  return OpDef(std::move(name))
      .Input("x")
      .Input("gamma", DType::kF32)
      .Input("beta", DType::kF32)
      .Attribute("groups", int64_t{1})
      .Attribute("epsilon", 1e-5)
      .Attribute("relu", int64_t{0});
}

// The common part of both gradient ops.
OpDef MakeGradient(std::string name) {
  return MakeNorm(std::move(name))
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .Input("dy")
      .Output("dx")
      .Output("dgamma", DType::kF32)
      .Output("dbeta", DType::kF32)
      .NoGradient("second derivatives are not supported")
      .OutputMayReuse("dx", "dy")
      .OutputMayReuse("dx", "x");
}

}  // namespace

// Mean and variance never have gradients: only the backward pass reads them.
OpDef Make_group_norm() {
  return MakeNorm("group_norm")
      .Output("y")
      .Output("mean", DType::kF32)
      .Output("variance", DType::kF32)
      .ShapeRule(GroupNormShapes)
      .Gradient(GroupNormGradient)
      .OutputMayReuse("y", "x")
      .CheapToRebuild()
      .RebuildWith("group_norm_apply", {"x", "gamma", "beta"}, {"mean", "variance"})
      // Statistics 5 (centre, sum, square, sum, merge), normalizing 3, comparing 1.
      .Flops(PerElementAndRelu(8, 1))
      .CpuKernel<GroupNormCpu>("GroupNormCpu")
      .CudaKernel<GroupNormCuda>("GroupNormCuda")
      .Reference<GroupNormReference>();
}

// Recomputes group_norm's y from its statistics, bit-identically.
OpDef Make_group_norm_apply() {
  return MakeNorm("group_norm_apply")
      .Input("mean", DType::kF32)
      .Input("variance", DType::kF32)
      .Output("y")
      .ShapeRule(GroupNormApplyShapes)
      .NoGradient("it recomputes a value; group_norm has the gradient")
      .OutputMayReuse("y", "x")
      .Flops(PerElementAndRelu(3, 1))
      .CpuKernel<GroupNormApplyCpu>("GroupNormApplyCpu")
      .CudaKernel<GroupNormApplyCuda>("GroupNormApplyCuda")
      .Reference<GroupNormApplyReference>();
}

OpDef Make_group_norm_grad() {
  return MakeGradient("group_norm_grad")
      .ShapeRule(GroupNormGradShapes)
      // Sums 4, combining 5; for ReLU each pass scales, shifts and compares.
      .Flops(PerElementAndRelu(9, 6))
      .CpuKernel<GroupNormGradCpu>("GroupNormGradCpu")
      .CudaKernel<GroupNormGradCuda>("GroupNormGradCuda")
      .Reference<GroupNormGradReference>();
}

// dx = other + the gradient of group_norm.
OpDef Make_group_norm_grad_add() {
  return MakeGradient("group_norm_grad_add")
      .Input("other")
      .ShapeRule(GroupNormGradAddShapes)
      .OutputMayReuse("dx", "other")
      .Flops(PerElementAndRelu(10, 6))
      .CpuKernel<GroupNormGradAddCpu>("GroupNormGradAddCpu")
      .CudaKernel<GroupNormGradAddCuda>("GroupNormGradAddCuda")
      .Reference<GroupNormGradAddReference>();
}

}  // namespace thimble
