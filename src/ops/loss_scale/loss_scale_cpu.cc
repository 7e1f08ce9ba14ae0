#include <algorithm>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/ops/loss_scale/loss_scale.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/loss_scale/loss_scale_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

double SumOfSquares(const float* numbers, size_t count) {
  const hn::ScalableTag<double> tag;
  const hn::Rebind<float, decltype(tag)> float_tag;
  const size_t lanes = hn::Lanes(tag);
  auto sum = hn::Zero(tag);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto number = hn::PromoteTo(tag, hn::LoadU(float_tag, numbers + i));
    sum = hn::MulAdd(number, number, sum);
  }
  double result = hn::GetLane(hn::SumOfLanes(tag, sum));
  for (; i < count; ++i) result += static_cast<double>(numbers[i]) * numbers[i];
  return result;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(SumOfSquares);

namespace {

size_t ChunksOf(const Shape& shape) {
  return (static_cast<size_t>(shape.elements()) + kElementsPerChunk - 1) / kElementsPerChunk;
}

// The squares of the numbers of one chunk; a packed tensor may have none there.
double SquaresOf(const TensorView& view, size_t chunk) {
  const size_t begin = chunk * kElementsPerChunk;
  const size_t end =
      std::min(static_cast<size_t>(view.shape.elements()), begin + kElementsPerChunk);
  alignas(64) float copy[kNumbersPerPiece];
  double sum = 0;
  for (size_t place = begin; place < end; place += kNumbersPerPiece) {
    const size_t count = std::min(kNumbersPerPiece, end - place);
    const float* numbers = ReadNumbers(ConstNumbersOf(view) + place, count, copy);
    sum += HWY_DYNAMIC_DISPATCH(SumOfSquares)(numbers, count);
  }
  return sum;
}

}  // namespace

// One sum for each chunk, so that the result does not depend on the number of threads.
size_t CheckGradientsCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  size_t chunks = 0;
  for (const Shape& gradient : call.inputs.subspan(1)) chunks += ChunksOf(gradient);
  return chunks * sizeof(double);
}

void CheckGradientsCpu::Run(const KernelCall& call) {
  auto* sums = reinterpret_cast<double*>(call.scratch.data());
  size_t num_sums = 0;
  for (const TensorView& gradient : call.inputs.subspan(1)) {
    const size_t chunks = ChunksOf(gradient.shape);
    const TensorView stored = StoredNumbers(gradient);
    call.pool.Run(chunks, [&](size_t chunk, size_t /*thread*/) {
      sums[num_sums + chunk] = SquaresOf(stored, chunk);
    });
    num_sums += chunks;
  }
  double squares = 0;
  for (size_t i = 0; i < num_sums; ++i) squares += sums[i];
  const float* state = call.In<float>(0);
  const double factor = GradientFactor(squares, state[kScale], call.attributes.Float("clip"));
  call.Out<float>(0)[0] = static_cast<float>(factor);
  float* next = call.Out<float>(1);
  std::copy_n(state, kNumScaleEntries, next);
  if (factor == 0) next[kNotFinite] += 1;
}

}  // namespace thimble
#endif  // HWY_ONCE
