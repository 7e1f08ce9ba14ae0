// Built from batch_norm's GPU code.
#include "thimble/ops/batch_norm/known_norm.cuh"
#include "thimble/ops/batch_norm_eval/batch_norm_eval.h"

namespace thimble {
namespace {

KnownNorm MakeNorm(const KernelCall& call) {
  return {.gamma = call.In<float>(1),
          .beta = call.In<float>(2),
          .mean = call.In<float>(3),
          .variance = call.In<float>(4),
          .epsilon = call.attributes.Float("epsilon"),
          .relu = call.attributes.Int("relu") != 0};
}

}  // namespace

void BatchNormEvalCuda::Run(const KernelCall& call) {
  LaunchNormalize(call.stream, BlocksFor(call.in_shape(0), call.attributes), MakeNorm(call),
                  ConstNumbersOf(call.inputs[0]), NumbersOf(call.outputs[0]));
}

size_t BatchNormEvalGradCuda::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return BlocksFor(call.inputs[0], call.attributes).num_partials() * sizeof(double);
}

void BatchNormEvalGradCuda::Run(const KernelCall& call) {
  LaunchBatchNormEvalGrad(call.stream, BlocksFor(call.in_shape(0), call.attributes), MakeNorm(call),
                          GradientTensorsOf(call), GradientSumsOf(call));
}

}  // namespace thimble
