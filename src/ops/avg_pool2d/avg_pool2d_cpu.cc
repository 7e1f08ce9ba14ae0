#include <algorithm>

#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/avg_pool2d/avg_pool2d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/avg_pool2d/avg_pool2d_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// out: (C) = factor * the sum over a rectangle of (height, width, C) whose rows are `row_stride`
// floats apart. Each row is summed separately first, which shortens the rounding chains.
void ScaledRectangleSum(const float* in, int64_t height, int64_t width, int64_t row_stride,
                        size_t channels, float factor, float* out) {
  ForEachVector(channels, [=](auto tag, size_t c) HWY_ATTR {
    auto sum = hn::Zero(tag);
    for (int64_t h = 0; h < height; ++h) {
      const float* row = in + h * row_stride + c;
      auto row_sum = hn::Zero(tag);
      for (int64_t w = 0; w < width; ++w, row += channels) {
        row_sum = hn::Add(row_sum, hn::LoadU(tag, row));
      }
      sum = hn::Add(sum, row_sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(tag, factor)), tag, out + c);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {
namespace {

PoolWindow WindowOf(const Attributes& attributes) {
  return {attributes.Int("kernel"), attributes.Int("stride")};
}

float Factor(const PoolWindow& window) {
  return static_cast<float>(1.0 / static_cast<double>(window.kernel * window.kernel));
}

// Calls body(b, h, w) for each position of `shape`, in chunks of about kElementsPerChunk elements,
// counting `elements` per position.
void ForEachPosition(ThreadPool& pool, const Shape& shape, int64_t elements,
                     FunctionRef<void(int64_t b, int64_t h, int64_t w)> body) {
  const int64_t num_positions = shape[0] * shape[1] * shape[2];
  const int64_t per_chunk = std::max<int64_t>(
      1, static_cast<int64_t>(kElementsPerChunk) / std::max<int64_t>(1, elements));
  const size_t num_chunks = static_cast<size_t>((num_positions + per_chunk - 1) / per_chunk);
  pool.Run(num_chunks, [&](size_t chunk, size_t /*thread*/) {
    const int64_t begin = static_cast<int64_t>(chunk) * per_chunk;
    const int64_t end = std::min(num_positions, begin + per_chunk);
    for (int64_t i = begin; i < end; ++i) {
      body(i / shape[2] / shape[1], i / shape[2] % shape[1], i % shape[2]);
    }
  });
}

}  // namespace

HWY_EXPORT(ScaledRectangleSum);

void AvgPool2dCpu::Run(const KernelCall& call) {
  const Shape& in = call.in_shape(0);    // (B, H, W, C)
  const Shape& out = call.out_shape(0);  // (B, OH, OW, C)
  const PoolWindow window = WindowOf(call.attributes);
  const float* x = call.In<float>(0);
  float* y = call.Out<float>(0);
  const int64_t work = window.kernel * window.kernel * in[3];
  ForEachPosition(call.pool, out, work, [&](int64_t b, int64_t h, int64_t w) {
    const int64_t corner = (b * in[1] + h * window.stride) * in[2] + w * window.stride;
    HWY_DYNAMIC_DISPATCH(ScaledRectangleSum)
    (x + corner * in[3], window.kernel, window.kernel, in[2] * in[3], static_cast<size_t>(in[3]),
     Factor(window), y + ((b * out[1] + h) * out[2] + w) * out[3]);
  });
}

void AvgPool2dGradCpu::Run(const KernelCall& call) {
  const Shape& in = call.in_shape(0);    // (B, OH, OW, C)
  const Shape& out = call.out_shape(0);  // (B, H, W, C)
  const PoolWindow window = WindowOf(call.attributes);
  const float* dy = call.In<float>(0);
  float* dx = call.Out<float>(0);
  ForEachPosition(call.pool, out, out[3], [&](int64_t b, int64_t h, int64_t w) {
    // The windows that cover this position are a rectangle in dy, possibly empty.
    const int64_t top = window.First(h);
    const int64_t left = window.First(w);
    const int64_t height = std::max<int64_t>(0, window.End(h, in[1]) - top);
    const int64_t width = std::max<int64_t>(0, window.End(w, in[2]) - left);
    const int64_t corner = width == 0 || height == 0 ? 0 : (b * in[1] + top) * in[2] + left;
    HWY_DYNAMIC_DISPATCH(ScaledRectangleSum)
    (dy + corner * in[3], height, width, in[2] * in[3], static_cast<size_t>(in[3]), Factor(window),
     dx + ((b * out[1] + h) * out[2] + w) * out[3]);
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
