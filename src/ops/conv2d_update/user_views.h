// The call of the op that uses a gradient, as a part of the call that also computes it.
#pragma once

#include <array>
#include <cstddef>

#include "thimble/graph/kernel.h"
#include "thimble/ops/conv2d_update/conv2d_update.h"

namespace thimble {

// The views of a call of the second op.
struct UserViews {
  static constexpr size_t kMaxViews = 6;  // sgd_update has as many inputs

  std::array<TensorView, kMaxViews> inputs;
  std::array<TensorView, kMaxViews> outputs;
  size_t num_inputs = 0;
  size_t num_outputs = 0;

  UserViews(const KernelCall& call, const TensorView& gradient) {
    for (size_t i = kConv2dInputs; i < call.inputs.size(); ++i) {
      if (num_inputs == kUpdateGradientInput) inputs[num_inputs++] = gradient;
      inputs[num_inputs++] = call.inputs[i];
    }
    for (const TensorView& output : call.outputs) outputs[num_outputs++] = output;
  }
  KernelCall Call(const KernelCall& both) const {
    return {{inputs.data(), num_inputs},
            {outputs.data(), num_outputs},
            both.attributes,
            /*scratch=*/{},
            both.pool};
  }
};

}  // namespace thimble
