#include "thimble/ops/group_norm/group_norm_cuda.h"

#include "thimble/ops/group_norm/group_norm_device.h"
#include "thimble/ops/group_norm/group_sizes.h"

namespace thimble {
namespace {

GroupBlocks BlocksFor(const Shape& x, const Attributes& attributes) {
  const GroupSizes sizes(x, attributes.Int("groups"));
  return {sizes.samples, sizes.rows, sizes.channels, sizes.groups};
}

KnownGroupNorm MakeNorm(const KernelCall& call) {
  return {.gamma = call.In<float>(1),
          .beta = call.In<float>(2),
          .mean = call.In<float>(3),
          .variance = call.In<float>(4),
          .epsilon = call.attributes.Float("epsilon"),
          .relu = call.attributes.Int("relu") != 0};
}

// group_norm_grad, and with `other` group_norm_grad_add.
void RunGrad(const KernelCall& call, const float* other) {
  LaunchGroupNormGrad(call.stream, BlocksFor(call.in_shape(0), call.attributes), MakeNorm(call),
                      {.x = call.In<float>(0),
                       .dy = call.In<float>(5),
                       .other = other,
                       .partials = reinterpret_cast<double*>(call.scratch.data()),
                       .dx = call.Out<float>(0),
                       .dgamma = call.Out<float>(1),
                       .dbeta = call.Out<float>(2)});
}

}  // namespace

void GroupNormCuda::Run(const KernelCall& call) {
  LaunchGroupNorm(call.stream, BlocksFor(call.in_shape(0), call.attributes),
                  {.x = call.In<float>(0),
                   .gamma = call.In<float>(1),
                   .beta = call.In<float>(2),
                   .y = call.Out<float>(0),
                   .mean = call.Out<float>(1),
                   .variance = call.Out<float>(2)},
                  call.attributes.Float("epsilon"), call.attributes.Int("relu") != 0);
}

void GroupNormApplyCuda::Run(const KernelCall& call) {
  LaunchGroupNormApply(call.stream, BlocksFor(call.in_shape(0), call.attributes), MakeNorm(call),
                       call.In<float>(0), call.Out<float>(0));
}

size_t GroupNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void GroupNormGradCuda::Run(const KernelCall& call) { RunGrad(call, nullptr); }

size_t GroupNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GroupNormGradCuda::ScratchBytes(call, limits);
}

void GroupNormGradAddCuda::Run(const KernelCall& call) { RunGrad(call, call.In<float>(6)); }

}  // namespace thimble
