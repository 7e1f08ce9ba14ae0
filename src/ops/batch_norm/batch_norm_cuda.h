// batch_norm and its gradients on a GPU: two launches each, one for sums, one for elements.
#pragma once

#include "thimble/graph/kernel.h"
#include "thimble/ops/batch_norm/channel_blocks.h"

namespace thimble {

// For x of shape (..., C), its samples in the parts that attribute `group` asks for.
ChannelBlocks BlocksFor(const Shape& x, const Attributes& attributes);
// Declines calls with more parts than a grid can have.
std::string_view FewParts(const OpCall& call);

struct BatchNormCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradAddCuda {
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
