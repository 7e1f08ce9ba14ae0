// Hands over the finished sums of a weight gradient in GPU code.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "thimble/device/cuda/numbers.cuh"
#include "thimble/device/cuda/packed.cuh"
#include "thimble/ops/accumulate/accumulate_number.cuh"
#include "thimble/ops/conv2d/cuda/sum_target.h"
#include "thimble/ops/sgd_update/sgd_step.cuh"
#include "thimble/tensor/short_numbers.h"

namespace thimble {

// Uses the gradients of a range. Not inlined: it is as long as a whole kernel, and the kernels that
// end with it are compiled in many variants.
__noinline__ __device__ inline void UseGradients(const SumTarget& target, const SgdRange& range,
                                                 FourNumbers gradients) {
  if (target.limits_f16) {
#pragma unroll
    for (float& gradient : gradients.numbers) {
      gradient = fminf(fmaxf(gradient, -kLargestF16), kLargestF16);
    }
  }
  if (target.ring > 0) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= range.count) break;
      StoreNumber(gradients.numbers[k],
                  AnyPointer<void>(target.numbers) + (range.number + k) % target.ring);
    }
    return;
  }
  const GradientUse& use = target.use;
  gradients = RoundFourNumbers(use.settings.gradient_type, gradients, {}, 0);
  if (use.user == SumUser::kAccumulate) {
    const ConstNumbers sum{use.tensor.weight, use.settings.weight_type};
    const Numbers next{use.tensor.next_weight, use.settings.next_weight_type};
    const bool first = *use.settings.seen == 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= range.count) break;
      AccumulateNumber(sum, first, gradients.numbers[k], range.first + k, next);
    }
    return;
  }
  UpdateNumbers<SgdCallers::kThread>(use.op, use.settings, ReadNow(use.settings), use.tensor, range,
                                     [&] { return gradients; });
}

// The active ones of some neighbouring sums, in order, and how many.
template <int kCount>
__device__ int PickActive(const float (&sums)[kCount], uint32_t active, FourNumbers& picked) {
  int count = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if ((active >> i & 1) == 0) continue;
#pragma unroll
    for (int k = 0; k <= i; ++k) {
      if (k == count) picked.numbers[k] = sums[i];
    }
    ++count;
  }
  return count;
}

// The sums of elements [element, element + kCount). Requires a multiple of kCount, which is 1 or 4.
template <int kCount>
__device__ void HandOverSums(const float (&sums)[kCount], const SumTarget& target,
                             int64_t element) {
  if (target.is_dense_array()) {
    return StorePack(sums, AnyPointer<void>(target.numbers) + (element - target.first_element));
  }
  if (target.ring == 0 && target.use.user == SumUser::kNone) {
    return StoreActive(sums, target.packed, element, target.numbers);
  }
  FourNumbers picked;
  SgdRange range{static_cast<int>(element), static_cast<int>(element), kCount, target.use.stream};
  uint32_t active = (1U << kCount) - 1;
  if (target.packed.is_packed()) {
    const PackedGroup group = FindGroup<kCount>(target.packed, element);
    active = group.active;
    range.first = static_cast<int>(group.place);
    range.number = static_cast<int>(group.place - __ldg(target.packed.starts));
  }
  range.count = PickActive(sums, active, picked);
  if (range.count > 0) UseGradients(target, range, picked);
}

}  // namespace thimble
