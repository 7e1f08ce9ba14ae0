// WeightDropout in GPU code.
#pragma once

#include <cuda_runtime.h>

#include "thimble/graph/kernel.h"
#include "thimble/ops/dropout/weight_dropout.h"

namespace thimble {

// What it reads from a call, without reading the epoch, which is on the device.
struct WeightDraw {
  DropoutDraw draw;
  const int32_t* samples;  // (B), or null: nothing is dropped
  const int32_t* epoch;    // (1), or null

  // `samples_input` is the index of that input.
  WeightDraw(const KernelCall& call, size_t samples_input)
      : draw(static_cast<uint64_t>(call.attributes.Int("seed")),
             static_cast<uint32_t>(call.attributes.Int("stream")), call.attributes.Float("rate")),
        samples(nullptr),
        epoch(nullptr) {
    if (call.inputs.size() <= samples_input || !(call.attributes.Float("rate") > 0)) return;
    samples = call.In<int32_t>(samples_input);
    epoch = call.In<int32_t>(samples_input + 1);
  }

  // The factor of a weight of row `row` of the batch: 0 if it is dropped. `element` is its index
  // within the sample.
  __device__ float Factor(int64_t row, int64_t element) const {
    if (samples == nullptr) return 1;
    const auto words =
        draw.Words(static_cast<uint32_t>(*epoch), static_cast<uint32_t>(samples[row]),
                   static_cast<uint32_t>(element / kElementsPerDraw));
    return draw.Keeps(words[static_cast<size_t>(element % kElementsPerDraw)]) ? draw.scale : 0.0F;
  }
};

}  // namespace thimble
