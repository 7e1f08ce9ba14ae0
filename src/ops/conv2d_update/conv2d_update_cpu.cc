#include <algorithm>
#include <array>
#include <cstring>

#include "thimble/device/cpu/packed_numbers.h"
#include "thimble/ops/accumulate/accumulate.h"
#include "thimble/ops/conv2d/grad_weight_blocks.h"
#include "thimble/ops/conv2d/grad_weight_ranges.h"
#include "thimble/ops/conv2d_update/conv2d_update.h"
#include "thimble/ops/conv2d_update/user_views.h"
#include "thimble/ops/sgd_update/sgd_update.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

// The op that uses the gradient.
struct GradientUser {
  bool updates = false;  // gets no infinite gradient from a finite sum
  size_t arrays = 0;     // inputs [0, arrays), with the gradient, and all outputs are arrays
  // Its kernel, for a range of the numbers of its arrays, from this one on.
  void (*run)(const KernelCall& call, size_t first_number) = nullptr;
};

// `count` of the numbers that a tensor stores. Of q8: from the beginning of a block on.
TensorView StoredRange(const TensorView& view, size_t first, size_t count) {
  const TensorView stored = StoredNumbers(view);
  return {(NumbersOf(stored) + first).data, stored.dtype, Shape{static_cast<int64_t>(count)}};
}

// NaN stays.
void LimitToF16(size_t count, float* numbers) {
  for (size_t i = 0; i < count; ++i) numbers[i] = std::clamp(numbers[i], -kLargestF16, kLargestF16);
}

// Gives the numbers of the gradient to their user. Its ranges begin at blocks of q8, which have one
// scale; so what is left of a range stays before the next one.
class UserRanges {
 public:
  UserRanges(const KernelCall& call, const GradientUser& user)
      : call_(call),
        user_(user),
        place_(call.outputs[0].packed),
        gradient_type_(static_cast<DType>(call.attributes.Int("gradient_type"))),
        elements_(static_cast<size_t>(call.outputs[0].shape.elements())) {}

  void Take(size_t first, size_t count, float* values) {
    const bool is_last = first + count == elements_;
    if (place_.is_packed()) count = GatherActive(place_, first, count, values, values);
    if (user_.updates && gradient_type_ == DType::kF16) LimitToF16(count, values);
    RoundNumbers(gradient_type_, count, values);
    float* begin = values - kept_;
    count += kept_;
    kept_ = is_last ? 0 : count % kQ8BlockNumbers;
    const size_t used = count - kept_;
    if (used > 0) Use(begin, used);
    std::memmove(values - kept_, begin + used, kept_ * sizeof(float));
  }

 private:
  void Use(float* gradient, size_t count) {
    UserViews views(call_, {gradient, DType::kF32, Shape{static_cast<int64_t>(count)}});
    for (size_t i = 0; i < user_.arrays; ++i) {
      if (i == kUpdateGradientInput) continue;
      views.inputs[i] = StoredRange(views.inputs[i], first_number_, count);
    }
    for (size_t o = 0; o < views.num_outputs; ++o) {
      views.outputs[o] = StoredRange(views.outputs[o], first_number_, count);
    }
    user_.run(views.Call(call_), first_number_);
    first_number_ += count;
  }

  const KernelCall& call_;
  const GradientUser& user_;
  PackedPlace place_;
  DType gradient_type_;
  size_t elements_;
  size_t kept_ = 0;
  size_t first_number_ = 0;
};
static_assert(kQ8BlockNumbers <= kRangeMargin);

void RunThen(const KernelCall& call, const GradientUser& user) {
  UserRanges ranges(call, user);
  RunGradWeightRanges(
      call, [&](size_t first, size_t count, float* values) { ranges.Take(first, count, values); });
}

// The same, unless the factor of the gradient is 0: then the second op does not use the gradient,
// and gets another array in its place.
void RunThenSgd(const KernelCall& call, const SgdInputs& inputs, const GradientUser& user) {
  const UserViews views(call, call.inputs[kConv2dInputs]);
  if (SgdFactorOf(views.Call(call), inputs) != 0) return RunThen(call, user);
  user.run(views.Call(call), 0);
  // The audit expects that the scratch is used.
  if (!call.scratch.empty()) std::memset(&call.scratch.back() - 3, 0, 4);
}

}  // namespace

size_t Conv2dUpdateCpu::ScratchBytes(const OpCall& call, const KernelLimits& limits) {
  return GradWeightRangesScratchBytes(call, limits);
}

void Conv2dAccumulateCpu::Run(const KernelCall& call) {
  const auto accumulate = [](const KernelCall& range, size_t /*first_number*/) {
    AccumulateCpu::Run(range);
  };
  RunThen(call, {.updates = false, .arrays = 2, .run = accumulate});
}

void Conv2dSgdGatherCpu::Run(const KernelCall& call) {
  RunThenSgd(call, kSgdGatherInputs, {true, kSgdGatherInputs.arrays, &SgdGatherCpu::RunRange});
}

void Conv2dSgdUpdateCpu::Run(const KernelCall& call) {
  RunThenSgd(call, kSgdUpdateInputs, {true, kSgdUpdateInputs.arrays, &SgdUpdateCpu::RunRange});
}

void Conv2dSgdUpdatePlainCpu::Run(const KernelCall& call) {
  RunThenSgd(call, kSgdPlainInputs, {true, kSgdPlainInputs.arrays, &SgdUpdatePlainCpu::RunRange});
}

}  // namespace thimble
