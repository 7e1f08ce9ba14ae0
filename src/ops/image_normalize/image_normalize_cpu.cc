#include <algorithm>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/image_normalize/image_normalize.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/image_normalize/image_normalize_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// x, y: (count); mean, inverse: (count) at least, one for each element.
void NormalizePixels(const uint8_t* x, const float* mean, const float* inverse, float* y,
                     size_t count) {
  ForEachVector(count, [=](auto tag, size_t i) HWY_ATTR {
    const hn::Rebind<uint8_t, decltype(tag)> bytes;
    const hn::Rebind<int32_t, decltype(tag)> integers;
    const auto pixel = hn::ConvertTo(tag, hn::PromoteTo(integers, hn::LoadU(bytes, x + i)));
    const auto centred = hn::Sub(pixel, hn::LoadU(tag, mean + i));
    hn::StoreU(hn::Mul(centred, hn::LoadU(tag, inverse + i)), tag, y + i);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
namespace {

// Pixels in one pattern of constants: their elements fill whole vectors of up to 16 floats for any
// number of channels.
constexpr size_t kPatternPixels = 16;

}  // namespace

HWY_EXPORT(NormalizePixels);

size_t ImageNormalizeCpu::ScratchBytes(const OpCall& call, const KernelLimits& /*limits*/) {
  return 2 * kPatternPixels * static_cast<size_t>(call.inputs[0][3]) * sizeof(float);
}

void ImageNormalizeCpu::Run(const KernelCall& call) {
  const size_t pattern = kPatternPixels * static_cast<size_t>(call.in_shape(0)[3]);
  if (pattern == 0) return;
  float* mean = reinterpret_cast<float*>(call.scratch.data());
  float* inverse = mean + pattern;
  const std::vector<double>& means = call.attributes.Floats("mean");
  const std::vector<double>& deviations = call.attributes.Floats("std");
  for (size_t i = 0; i < pattern; ++i) {
    mean[i] = static_cast<float>(means[i % means.size()]);
    inverse[i] = static_cast<float>(1.0 / deviations[i % means.size()]);
  }

  const uint8_t* x = call.In<uint8_t>(0);
  const size_t count = static_cast<size_t>(call.in_shape(0).elements());
  const size_t chunk_size = std::max<size_t>(1, kElementsPerChunk / pattern) * pattern;
  call.pool.Run((count + chunk_size - 1) / chunk_size, [&](size_t chunk, size_t /*thread*/) {
    alignas(64) float copy[kNumbersPerPiece];
    const size_t end = std::min(count, (chunk + 1) * chunk_size);
    for (size_t i = chunk * chunk_size; i < end; i += pattern) {
      for (size_t k = 0; k < std::min(pattern, end - i); k += kNumbersPerPiece) {
        const size_t piece = std::min({kNumbersPerPiece, pattern - k, end - i - k});
        const Numbers out = NumbersOf(call.outputs[0]) + (i + k);
        float* y = RoomForNumbers(out, copy);
        HWY_DYNAMIC_DISPATCH(NormalizePixels)(x + i + k, mean + k, inverse + k, y, piece);
        WriteNumbers(y, piece, out);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
