// Kernels of batch_norm and its gradients, limited by memory bandwidth: a pass for the sums, then
// one for the elements.
#pragma once

#include "thimble/base/nearly_equal_parts.h"
#include "thimble/graph/kernel.h"

namespace thimble {

// The parts of the samples (the first dimension of x) that are normalised by their own statistics.
// One part if attribute `group` is 0, otherwise parts of at most `group` samples.
inline NearlyEqualParts SampleParts(const Shape& x, const Attributes& attributes) {
  const int64_t group = attributes.Int("group");
  return group == 0 ? NearlyEqualParts{x[0], 1} : CutNearlyEqually(x[0], group);
}

struct BatchNormCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormStatisticsCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradAddCpu {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

// For CUDA kernels, which decline calls with more parts than a grid can have.
struct FewParts {
  static std::string_view Declines(const OpCall& call);
};

struct BatchNormCuda : FewParts {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradCuda : FewParts {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

struct BatchNormGradAddCuda : FewParts {
  static constexpr bool kTakesShortNumbers = true;
  static size_t ScratchBytes(const OpCall& call, const KernelLimits& limits);
  static void Run(const KernelCall& call);
};

}  // namespace thimble
