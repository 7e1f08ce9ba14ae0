// Kernels of rewire and rewire_plain. Limited by drawing and comparing a random key for each
// inactive position, about three times; the numbers themselves are moved once.
#pragma once

#include <cstddef>
#include <string_view>

#include "thimble/graph/kernel.h"

namespace thimble {

// Where both ops have their ports: the pattern first, then the pools (weights and, for rewire,
// momentum), then single numbers. Outputs come in the same order.
struct RewirePorts {
  size_t pools = 0;  // inputs and outputs [1, 1 + pools)

  constexpr size_t threshold() const { return 1 + pools; }
  constexpr size_t update() const { return 2 + pools; }  // input
  constexpr size_t moved() const { return 2 + pools; }   // output
};
constexpr RewirePorts RewirePortsOf(size_t num_inputs) { return {num_inputs - 3}; }

struct RewireCpu {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call);
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// The same bits, except those of NaN in the scales of momentum in 8 bits: processors make different
// ones. Unlike the CPU it cannot check that the pattern is one for these weights.
struct RewireCuda {
  static constexpr bool kTakesShortNumbers = true;
  static std::string_view Declines(const OpCall& call) { return RewireCpu::Declines(call); }
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits) {
    return RewireCpu::ScratchBytes(call, limits);
  }
  static void Run(const KernelCall& call);
};

}  // namespace thimble
