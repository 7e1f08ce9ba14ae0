// Parts of the definitions of ops with dropout inside; see weight_dropout.h.
#pragma once

#include "thimble/graph/op_def.h"
#include "thimble/ops/dropout/dropout_draw.h"
#include "thimble/ops/shape_rules.h"

namespace thimble {

// Checks rate and stream.
inline Result<void> CheckDropoutAttributes(const Attributes& attributes) {
  const double rate = attributes.Float("rate");
  if (!(rate >= 0 && rate < 1)) {
    return BadInput(fmt::format("rate is {}, expected at least 0 and below 1", rate));
  }
  const int64_t stream = attributes.Int("stream");
  if (stream < 0 || stream > UINT32_MAX) {
    return BadInput(fmt::format("stream is {}, expected 0 to {}", stream, UINT32_MAX));
  }
  return {};
}

// Adds the attributes and the inputs samples and epoch. Call it after all other inputs.
inline OpDef& AddWeightDropout(OpDef& op) {
  return op.OptionalInput("samples", DType::kI32)
      .OptionalInput("epoch", DType::kI32)
      .Attribute("rate", 0.0)
      .Attribute("seed", int64_t{0})
      .Attribute("stream", int64_t{0});
}

// Checks the attributes and both inputs of such an op. `samples_input` is the index of samples.
inline Result<void> CheckWeightDropout(const OpCall& call, size_t samples_input, int64_t batch) {
  THIMBLE_TRY(CheckDropoutAttributes(call.attributes));
  const double rate = call.attributes.Float("rate");
  const size_t expected = samples_input + (rate > 0 ? 2 : 0);
  if (call.inputs.size() != expected) {
    return BadInput(
        fmt::format("got {} inputs, expected {}: 'samples' and 'epoch' belong to rates "
                    "above 0, and rate is {}",
                    call.inputs.size(), expected, rate));
  }
  if (rate == 0) return {};
  THIMBLE_TRY(RequireShape("samples", call.inputs[samples_input], Shape{batch}));
  return RequireShape("epoch", call.inputs[samples_input + 1], Shape{1});
}

// The inputs of a gradient node: `inputs` and, if the forward node has them, samples and epoch.
inline std::vector<ValueId> WithDraws(const GradientBuilder& g, std::vector<ValueId> inputs) {
  if (g.attributes().Float("rate") > 0) {
    inputs.insert(inputs.end(), {g.In("samples"), g.In("epoch")});
  }
  return inputs;
}

}  // namespace thimble
