// What the ops of sgd_update do to numbers, in GPU code: also for kernels that compute the gradient
// themselves and use it at once. Functions that get the op as an argument are inlined, so that one
// that is known when the code is compiled costs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include "thimble/ops/sgd_update/sgd_ports.h"
#include "thimble/ops/update_numbers.cuh"
#include "thimble/tensor/packed.h"

namespace thimble {

// The numbers that a step of a launch reads.
struct SgdNow {
  float rate;
  float factor;
  bool first;  // part of the batch
  float gain;  // of error feedback
};

__device__ inline SgdNow ReadNow(const SgdSettings& settings) {
  const float rate = settings.learning_rate == nullptr ? 0.0F : *settings.learning_rate;
  return {.rate = rate,
          .factor = settings.factor == nullptr ? 1.0F : *settings.factor,
          .first = settings.seen != nullptr && *settings.seen == 0,
          .gain = FeedbackGain(settings.momentum, settings.nesterov, settings.feedback_rate, rate)};
}

__device__ __forceinline__ void UpdateElement(SgdOp op, const SgdSettings& settings,
                                              const SgdNow& now, float gradient, float& weight,
                                              float& momentum) {
  if (OnlyApplies(op)) {
    weight = fmaf(-now.rate, momentum, weight);
    return;
  }
  const float scaled = now.factor == 0 ? 0.0F : now.factor * gradient;
  if (op == SgdOp::kGather && !now.first) {
    momentum = fmaf(now.factor, now.factor == 0 ? 0.0F : gradient, momentum);
    return;
  }
  const float slope = fmaf(settings.weight_decay, weight, scaled);
  float step = slope;
  if (op != SgdOp::kPlain) {
    momentum = fmaf(settings.momentum, momentum, slope);
    step = settings.nesterov ? fmaf(settings.momentum, momentum, slope) : momentum;
  }
  if (WritesWeight(op)) weight = fmaf(-now.rate, step, weight);
}

// The arrays of the elements that are stored.
__device__ inline SgdTensor StoredArrays(const SgdSettings& /*settings*/, const SgdTensor& tensor) {
  return tensor;
}
__device__ inline SgdTensor StoredArrays(const SgdSettings& settings,
                                         const PackedSgdTensor& tensor) {
  const PackedPlace place{nullptr, tensor.starts, tensor.blocks, tensor.index};
  const auto moved = [&](auto* array, DType type) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(array)>>,
                                    const std::byte, std::byte>;
    return array == nullptr ? nullptr : static_cast<Byte*>(array) + place.OffsetBytes(type);
  };
  SgdTensor stored = tensor;
  stored.weight = moved(tensor.weight, settings.weight_type);
  stored.gradient = moved(tensor.gradient, settings.gradient_type);
  stored.momentum = moved(tensor.momentum, settings.momentum_type);
  stored.next_weight = moved(tensor.next_weight, settings.next_weight_type);
  stored.next_momentum = moved(tensor.next_momentum, settings.next_momentum_type);
  // Of a split tensor: those of its piece.
  const auto rest = static_cast<int64_t>(place.count()) - int64_t{4} * settings.first_draw;
  stored.elements = static_cast<int>(min(int64_t{tensor.elements}, max(int64_t{0}, rest)));
  return stored;
}

// Some neighbouring numbers, at most four.
struct SgdRange {
  int first;   // in the arrays
  int number;  // the same as an index within the tensor, by which random words are drawn
  int count;
  uint32_t stream;  // of the tensor
};

// Who calls the functions for a range.
enum class SgdCallers {
  kBlock,   // all threads of a block together; ranges begin at multiples of 4, arrays may be q8
  kThread,  // each thread for itself; ranges begin anywhere, no array is q8
};

// The random words of a range.
template <SgdCallers kCallers>
__device__ __forceinline__ std::array<uint32_t, 4> SgdWords(SgdOp op, const SgdSettings& settings,
                                                            const SgdRange& range) {
  const uint32_t occasion = op == SgdOp::kGather ? static_cast<uint32_t>(*settings.seen) + 1 : 0;
  const auto update = static_cast<uint32_t>(*settings.update);
  const uint32_t draw = settings.first_draw + static_cast<uint32_t>(range.number) / 4;
  auto words = Philox4x32(settings.key, {draw, range.stream, occasion, update});
  if constexpr (kCallers == SgdCallers::kThread) {
    const int skipped = range.number % 4;
    if (skipped == 0) return words;
    auto next = Philox4x32(settings.key, {draw + 1, range.stream, occasion, update});
    for (int i = 0; i < skipped; ++i) {
      words = {words[1], words[2], words[3], next[0]};
      next = {next[1], next[2], next[3], 0};
    }
  }
  return words;
}

// An update that is skipped: the numbers stay as they are.
template <SgdCallers kCallers>
__device__ __forceinline__ void CopySgdNumbers(SgdOp op, const SgdSettings& settings,
                                               const SgdTensor& tensor, const SgdRange& range) {
  constexpr bool kQ8 = kCallers == SgdCallers::kBlock;
  if (WritesWeight(op)) {
    CopyFourNumbers<kQ8>(settings.weight_type, tensor.weight, settings.next_weight_type,
                         tensor.next_weight, range.first, range.count);
  }
  if (WritesMomentum(op)) {
    CopyFourNumbers<kQ8>(settings.momentum_type, tensor.momentum, settings.next_momentum_type,
                         tensor.next_momentum, range.first, range.count);
  }
}

// Returns what rounding takes from the weights to their momentum.
__device__ __forceinline__ void FeedBack(const SgdSettings& settings, const SgdNow& now,
                                         const FourRounding& rounding, const FourNumbers& weight,
                                         FourNumbers& momentum) {
  const FourNumbers stored =
      RoundFourNumbers(settings.next_weight_type, weight, rounding, RoundingDraw::ShiftOf(0));
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float returned = now.gain * (weight.numbers[k] - stored.numbers[k]);
    momentum.numbers[k] -= fmaxf(fminf(returned, kMostFeedback), -kMostFeedback);
  }
}

// Any types, rounding at random if the settings ask for it. `load_gradient` returns the gradients
// as an FourNumbers; it is not called if they are not used.
template <SgdCallers kCallers, class LoadGradient>
__device__ __forceinline__ void UpdateNumbers(SgdOp op, const SgdSettings& settings,
                                              const SgdNow& now, const SgdTensor& tensor,
                                              const SgdRange& range,
                                              const LoadGradient& load_gradient) {
  constexpr bool kQ8 = kCallers == SgdCallers::kBlock;
  if (now.factor == 0 && !(op == SgdOp::kGather && now.first)) {  // the same for all threads
    return CopySgdNumbers<kCallers>(op, settings, tensor, range);
  }
  FourNumbers weight =
      LoadFourNumbers<kQ8>(settings.weight_type, tensor.weight, range.first, range.count);
  FourNumbers momentum =
      LoadFourNumbers<kQ8>(settings.momentum_type, tensor.momentum, range.first, range.count);
  const FourNumbers gradient = load_gradient();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    UpdateElement(op, settings, now, gradient.numbers[k], weight.numbers[k], momentum.numbers[k]);
  }
  FourRounding rounding{.stochastic = settings.stochastic};
  if (settings.stochastic) rounding.words = SgdWords<kCallers>(op, settings, range);
  if (CanFeedBack(op) && now.gain > 0) FeedBack(settings, now, rounding, weight, momentum);
  if (WritesWeight(op)) {
    StoreFourNumbers<kQ8>(settings.next_weight_type, weight, rounding, 0, tensor.next_weight,
                          range.first, range.count);
  }
  if (WritesMomentum(op)) {
    StoreFourNumbers<kQ8>(settings.next_momentum_type, momentum, rounding,
                          op == SgdOp::kGather ? 0 : 1, tensor.next_momentum, range.first,
                          range.count);
  }
}

}  // namespace thimble
