#include <algorithm>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/dropout/dropout.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/dropout/dropout_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/philox-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// y = words[i] below the threshold ? 0 : scale * x.
void DropElements(const DropoutDraw& draw, const uint32_t* words, const float* x, float* y,
                  size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(tag)> word_tag;
    const auto dropped = hn::Lt(hn::LoadU(word_tag, words + i), hn::Set(word_tag, draw.threshold));
    const auto scaled = hn::Mul(hn::LoadU(tag, x + i), hn::Set(tag, draw.scale));
    hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(tag, dropped), scaled), tag, y + i);
  });
}

// x, y: `count` elements of a sample from the element `begin` on, which is a multiple of 4.
void DropPart(const DropoutDraw& draw, uint32_t epoch, uint32_t sample, size_t begin, size_t count,
              const float* x, float* y) {
  HWY_ALIGN uint32_t words[kNumbersPerPiece];
  const auto first = static_cast<uint32_t>(begin / kElementsPerDraw);
  PhiloxWords(draw.source.key(), {first, draw.stream, sample, epoch}, count, words);
  DropElements(draw, words, x, y, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DropPart);

void DropoutCpu::Run(const KernelCall& call) {
  const auto samples = static_cast<size_t>(call.in_shape(0)[0]);
  const auto elements = static_cast<size_t>(ElementsPerSample(call.in_shape(0)));
  const DropoutDraw draw = DrawOf(call);
  const auto epoch = static_cast<uint32_t>(call.In<int32_t>(2)[0]);
  const size_t chunks = (elements + kElementsPerChunk - 1) / kElementsPerChunk;
  call.pool.Run(samples * chunks, [&](size_t task, size_t /*thread*/) {
    alignas(64) float x_copy[kNumbersPerPiece];
    alignas(64) float y_copy[kNumbersPerPiece];
    const size_t row = task / chunks;
    const auto sample = static_cast<uint32_t>(call.In<int32_t>(1)[row]);
    const size_t chunk = task % chunks * kElementsPerChunk;
    const size_t chunk_end = std::min(elements, chunk + kElementsPerChunk);
    for (size_t begin = chunk; begin < chunk_end; begin += kNumbersPerPiece) {
      const size_t count = std::min(kNumbersPerPiece, chunk_end - begin);
      const size_t place = row * elements + begin;
      const float* x = ReadNumbers(ConstNumbersOf(call.inputs[0]) + place, count, x_copy);
      const Numbers out = NumbersOf(call.outputs[0]) + place;
      float* y = RoomForNumbers(out, y_copy);
      HWY_DYNAMIC_DISPATCH(DropPart)(draw, epoch, sample, begin, count, x, y);
      WriteNumbers(y, count, out);
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
