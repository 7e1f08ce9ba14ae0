#include <algorithm>

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

// Random words drawn at once: 4 KiB, so that they stay in the first-level cache.
constexpr size_t kWordsAtOnce = 1024;

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

// Elements [begin, end) of a sample, whose data x and y point to; begin is a multiple of 4.
void DropPart(const DropoutDraw& draw, uint32_t epoch, uint32_t sample, size_t begin, size_t end,
              const float* x, float* y) {
  HWY_ALIGN uint32_t words[kWordsAtOnce];
  for (size_t i = begin; i < end; i += kWordsAtOnce) {
    const size_t count = std::min(kWordsAtOnce, end - i);
    const auto first = static_cast<uint32_t>(i / kElementsPerDraw);
    PhiloxWords(draw.source.key(), {first, draw.stream, sample, epoch}, count, words);
    DropElements(draw, words, x + i, y + i, count);
  }
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
    const size_t row = task / chunks;
    const size_t begin = task % chunks * kElementsPerChunk;
    HWY_DYNAMIC_DISPATCH(DropPart)
    (draw, epoch, static_cast<uint32_t>(call.In<int32_t>(1)[row]), begin,
     std::min(elements, begin + kElementsPerChunk), call.In<float>(0) + row * elements,
     call.Out<float>(0) + row * elements);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
