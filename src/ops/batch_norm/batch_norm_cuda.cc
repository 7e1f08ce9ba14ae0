#include "thimble/ops/batch_norm/batch_norm_cuda.h"

#include "thimble/ops/batch_norm/batch_norm_device.h"
#include "thimble/ops/batch_norm/batch_norm_shapes.h"

namespace thimble {
namespace {

// batch_norm_grad, and with `other` batch_norm_grad_add.
void RunGrad(const KernelCall& call, const float* other) {
  LaunchBatchNormGrad(call.stream, BlocksFor(call.in_shape(0), call.attributes),
                      {.gamma = call.In<float>(1),
                       .beta = call.In<float>(2),
                       .mean = call.In<float>(3),
                       .variance = call.In<float>(4),
                       .epsilon = call.attributes.Float("epsilon"),
                       .relu = call.attributes.Int("relu") != 0},
                      {.x = call.In<float>(0),
                       .dy = call.In<float>(5),
                       .other = other,
                       .partials = reinterpret_cast<double*>(call.scratch.data()),
                       .dx = call.Out<float>(0),
                       .dgamma = call.Out<float>(1),
                       .dbeta = call.Out<float>(2)});
}

}  // namespace

ChannelBlocks BlocksFor(const Shape& x, const Attributes& attributes) {
  const int64_t channels = x[x.rank() - 1];
  const int64_t sample_rows = x.elements() == 0 ? 0 : x.elements() / x[0] / channels;
  return {sample_rows, channels, SampleParts(x, attributes)};
}

std::string_view FewParts(const OpCall& call) {
  if (SampleParts(call.inputs[0], call.attributes).parts <= kMaxNormParts) return {};
  return "a grid has room for 65,534 groups of samples";
}

// The partial sums, and one float for each statistic.
size_t BatchNormCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  const ChannelBlocks blocks = BlocksFor(call.inputs[0], call.attributes);
  return blocks.num_partials() * sizeof(double) + blocks.num_statistics() * sizeof(float);
}

void BatchNormCuda::Run(const KernelCall& call) {
  const ChannelBlocks blocks = BlocksFor(call.in_shape(0), call.attributes);
  auto* partials = reinterpret_cast<double*>(call.scratch.data());
  LaunchBatchNorm(call.stream, blocks,
                  {.x = call.In<float>(0),
                   .gamma = call.In<float>(1),
                   .beta = call.In<float>(2),
                   .partials = partials,
                   .guess = reinterpret_cast<float*>(partials + blocks.num_partials()),
                   .y = call.Out<float>(0),
                   .mean = call.Out<float>(1),
                   .variance = call.Out<float>(2)},
                  call.attributes.Float("epsilon"), call.attributes.Int("relu") != 0);
}

size_t BatchNormGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void BatchNormGradCuda::Run(const KernelCall& call) { RunGrad(call, nullptr); }

size_t BatchNormGradAddCuda::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return BatchNormGradCuda::ScratchBytes(call, limits);
}

void BatchNormGradAddCuda::Run(const KernelCall& call) { RunGrad(call, call.In<float>(6)); }

}  // namespace thimble
