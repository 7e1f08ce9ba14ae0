// The kernels of adam_update, and of adam_gather and adam_apply, which divide it between the parts
// of a batch: one pass each, limited by memory bandwidth.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

// Where an op has its inputs: first the arrays, then single numbers.
inline constexpr size_t kNoAdamInput = ~size_t{0};
struct AdamInputs {
  size_t arrays;
  size_t rate;    // learning rate
  size_t seen;    // samples in earlier parts
  size_t update;  // number of the update
  size_t factor;  // of the gradient, optional
};
inline constexpr AdamInputs kAdamUpdateInputs{4, 4, kNoAdamInput, 5, 6};
inline constexpr AdamInputs kAdamGatherInputs{3, kNoAdamInput, 3, 4, 5};
inline constexpr AdamInputs kAdamApplyInputs{3, 3, kNoAdamInput, 4, kNoAdamInput};

struct AdamSpec {
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
};
// Of an op with these inputs. adam_gather and the like change no weights.
inline AdamSpec AdamSpecOf(const Attributes& attributes, const AdamInputs& inputs) {
  const double beta1 = attributes.Float("beta1");
  const double beta2 = attributes.Float("beta2");
  if (inputs.rate == kNoAdamInput) return {beta1, beta2, /*epsilon=*/1, /*weight_decay=*/0};
  return {beta1, beta2, attributes.Float("epsilon"), attributes.Float("weight_decay")};
}

// The factors of one update, computed in doubles: 1 - beta2 and the corrections of the first
// updates are small differences.
struct AdamFactors {
  double beta1;
  double beta2;
  double new_share1;  // 1 - beta1
  double new_share2;  // 1 - beta2
  double rate;        // learning rate / (1 - beta1^t)
  double root_scale;  // 1 / sqrt(1 - beta2^t)
  double epsilon;
  double decay;  // learning rate * weight decay
  // |first moment| <= bound_slope * root + bound_offset, for any gradients (see adam_update.cc).
  double bound_slope;
  double bound_offset;

  // `update` counts from 0.
#ifdef __CUDACC__
  __host__ __device__
#endif
  AdamFactors(const AdamSpec& spec, double learning_rate, int32_t update)
      : beta1(spec.beta1),
        beta2(spec.beta2),
        new_share1(1 - spec.beta1),
        new_share2(1 - spec.beta2),
        rate(learning_rate / (1 - std::pow(spec.beta1, update + 1.0))),
        root_scale(1 / std::sqrt(1 - std::pow(spec.beta2, update + 1.0))),
        epsilon(spec.epsilon),
        decay(learning_rate * spec.weight_decay) {
    const double forgetting = spec.beta1 * spec.beta1 / spec.beta2;
    const bool is_bounded = forgetting < 1;  // false for beta2 = 0 as well
    bound_slope = is_bounded ? new_share1 / std::sqrt(new_share2 * (1 - forgetting)) : 0;
    bound_offset = is_bounded ? 0 : std::numeric_limits<double>::infinity();
  }
};

// What the numbers of a call in host memory say.
inline AdamFactors AdamFactorsOf(const KernelCall& call, const AdamInputs& inputs) {
  const double rate = inputs.rate == kNoAdamInput ? 0 : call.In<float>(inputs.rate)[0];
  return {AdamSpecOf(call.attributes, inputs), rate, call.In<int32_t>(inputs.update)[0]};
}
inline float GradientFactorOf(const KernelCall& call, const AdamInputs& inputs) {
  return call.inputs.size() > inputs.factor ? call.In<float>(inputs.factor)[0] : 1.0F;
}

struct AdamUpdateCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};
struct AdamGatherCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};
struct AdamApplyCpu {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
};

// Updates of many tensors are one launch.
struct AdamUpdateCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct AdamGatherCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};
struct AdamApplyCuda {
  static constexpr bool kTakesShortNumbers = true;
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
