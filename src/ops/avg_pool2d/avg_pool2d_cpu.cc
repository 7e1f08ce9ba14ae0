#include <algorithm>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/parallel_elements.h"
#include "thimble/ops/avg_pool2d/avg_pool2d.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/ops/avg_pool2d/avg_pool2d_cpu.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"
#include "thimble/device/cpu/simd_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// out: `count` channels of factor * the sum over a rectangle. Each row is summed separately first,
// which shortens the rounding chains.
template <class Stored>
HWY_INLINE void SumRectangle(const PoolRectangle& in, const Stored* first, size_t count,
                             float factor, float* out) {
  ForEachVector(count, [=](auto tag, size_t c) HWY_ATTR {
    auto sum = hn::Zero(tag);
    for (int64_t h = 0; h < in.height; ++h) {
      const Stored* row = first + h * in.row_stride + c;
      auto row_sum = hn::Zero(tag);
      for (int64_t w = 0; w < in.width; ++w, row += in.channels) {
        row_sum = hn::Add(row_sum, LoadNumbers(tag, row));
      }
      sum = hn::Add(sum, row_sum);
    }
    hn::StoreU(hn::Mul(sum, hn::Set(tag, factor)), tag, out + c);
  });
}

// The same from a tensor of any type; `channel` is the first of the channels.
void ScaledRectangleSum(const TensorView& tensor, const PoolRectangle& in, size_t channel,
                        size_t count, float factor, float* out) {
  const size_t first = in.corner + channel;
  switch (tensor.dtype) {
    case DType::kF16:
      return SumRectangle(in, tensor.DataAs<const F16>() + first, count, factor, out);
    case DType::kBF16:
      return SumRectangle(in, tensor.DataAs<const BF16>() + first, count, factor, out);
    default:
      return SumRectangle(in, tensor.DataAs<const float>() + first, count, factor, out);
  }
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

// A rectangle of a tensor (B, H, W, C), from the position `corner` on.
PoolRectangle RectangleOf(const Shape& shape, int64_t corner, int64_t height, int64_t width) {
  return {static_cast<size_t>(corner * shape[3]), height, width, shape[2] * shape[3],
          static_cast<size_t>(shape[3])};
}

// The first channel of a position.
size_t PlaceOf(const Shape& shape, int64_t b, int64_t h, int64_t w) {
  return static_cast<size_t>(((b * shape[1] + h) * shape[2] + w) * shape[3]);
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

namespace {

// One position of `out`, whose channels begin at the element `place`: factor * the sum over `in`.
void WriteSums(const TensorView& tensor, const PoolRectangle& in, float factor,
               const TensorView& out, size_t place) {
  alignas(64) float copy[kNumbersPerPiece];
  for (size_t channel = 0; channel < in.channels; channel += kNumbersPerPiece) {
    const size_t count = std::min(kNumbersPerPiece, in.channels - channel);
    const Numbers to = NumbersOf(out) + (place + channel);
    float* room = RoomForNumbers(to, copy);
    HWY_DYNAMIC_DISPATCH(ScaledRectangleSum)(tensor, in, channel, count, factor, room);
    WriteNumbers(room, count, to);
  }
}

}  // namespace

void AvgPool2dCpu::Run(const KernelCall& call) {
  const Shape& in = call.in_shape(0);    // (B, H, W, C)
  const Shape& out = call.out_shape(0);  // (B, OH, OW, C)
  const PoolWindow window = WindowOf(call.attributes);
  const int64_t work = window.kernel * window.kernel * in[3];
  ForEachPosition(call.pool, out, work, [&](int64_t b, int64_t h, int64_t w) {
    const int64_t corner = (b * in[1] + h * window.stride) * in[2] + w * window.stride;
    WriteSums(call.inputs[0], RectangleOf(in, corner, window.kernel, window.kernel), Factor(window),
              call.outputs[0], PlaceOf(out, b, h, w));
  });
}

void AvgPool2dGradCpu::Run(const KernelCall& call) {
  const Shape& in = call.in_shape(0);    // (B, OH, OW, C)
  const Shape& out = call.out_shape(0);  // (B, H, W, C)
  const PoolWindow window = WindowOf(call.attributes);
  ForEachPosition(call.pool, out, out[3], [&](int64_t b, int64_t h, int64_t w) {
    // The windows that cover this position are a rectangle in dy, possibly empty.
    const int64_t top = window.First(h);
    const int64_t left = window.First(w);
    const int64_t height = std::max<int64_t>(0, window.End(h, in[1]) - top);
    const int64_t width = std::max<int64_t>(0, window.End(w, in[2]) - left);
    const int64_t corner = width == 0 || height == 0 ? 0 : (b * in[1] + top) * in[2] + left;
    WriteSums(call.inputs[0], RectangleOf(in, corner, height, width), Factor(window),
              call.outputs[0], PlaceOf(out, b, h, w));
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
