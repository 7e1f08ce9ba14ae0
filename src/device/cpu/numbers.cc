#include "thimble/device/cpu/numbers.h"

#include <algorithm>
#include <cstring>

#include "thimble/base/check.h"
#include "thimble/device/cpu/parallel_elements.h"

// Highway compiles the part between BEFORE_NAMESPACE and AFTER_NAMESPACE once per SIMD target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "thimble/device/cpu/numbers.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "thimble/device/cpu/numbers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
namespace HWY_NAMESPACE {
namespace {

void DecodeF16(const F16* from, size_t count, float* to) { Decode(from, count, to); }
void DecodeBF16(const BF16* from, size_t count, float* to) { Decode(from, count, to); }
void EncodeF16(const float* from, size_t count, F16* to) { Encode(from, count, to); }
void EncodeBF16(const float* from, size_t count, BF16* to) { Encode(from, count, to); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DecodeF16);
HWY_EXPORT(DecodeBF16);
HWY_EXPORT(EncodeF16);
HWY_EXPORT(EncodeBF16);

void DecodeNumbers(const TensorView& from, size_t begin, size_t count, float* to) {
  switch (from.dtype) {
    case DType::kF32:
      std::memcpy(to, from.DataAs<const float>() + begin, count * sizeof(float));
      return;
    case DType::kF16:
      HWY_DYNAMIC_DISPATCH(DecodeF16)(from.DataAs<const F16>() + begin, count, to);
      return;
    case DType::kBF16:
      HWY_DYNAMIC_DISPATCH(DecodeBF16)(from.DataAs<const BF16>() + begin, count, to);
      return;
    case DType::kU8:
    case DType::kI32:
      break;
  }
  THIMBLE_CHECK(false, "{} does not store numbers", Name(from.dtype));
}

void EncodeNumbers(const float* from, size_t begin, size_t count, const TensorView& to) {
  switch (to.dtype) {
    case DType::kF32:
      std::memcpy(to.DataAs<float>() + begin, from, count * sizeof(float));
      return;
    case DType::kF16:
      HWY_DYNAMIC_DISPATCH(EncodeF16)(from, count, to.DataAs<F16>() + begin);
      return;
    case DType::kBF16:
      HWY_DYNAMIC_DISPATCH(EncodeBF16)(from, count, to.DataAs<BF16>() + begin);
      return;
    case DType::kU8:
    case DType::kI32:
      break;
  }
  THIMBLE_CHECK(false, "{} does not store numbers", Name(to.dtype));
}

const float* ReadNumbers(const TensorView& from, size_t begin, size_t count, float* copy) {
  if (from.dtype == DType::kF32) return from.DataAs<const float>() + begin;
  DecodeNumbers(from, begin, count, copy);
  return copy;
}

float* RoomForNumbers(const TensorView& to, size_t begin, float* copy) {
  return to.dtype == DType::kF32 ? to.DataAs<float>() + begin : copy;
}

void WriteNumbers(const float* room, size_t begin, size_t count, const TensorView& to) {
  if (to.dtype != DType::kF32) EncodeNumbers(room, begin, count, to);
}

void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs,
                     FunctionRef<void(const NumberPiece&)> body) {
  constexpr size_t kMax = NumberPiece::kMaxTensors;
  THIMBLE_CHECK(inputs.size() <= kMax && outputs.size() <= kMax && !outputs.empty());
  const auto is_float = [](const TensorView& view) { return view.dtype == DType::kF32; };
  const bool all_floats =
      std::ranges::all_of(inputs, is_float) && std::ranges::all_of(outputs, is_float);
  const size_t piece_numbers = all_floats ? kElementsPerChunk : kNumbersPerPiece;
  const auto elements = static_cast<size_t>(outputs[0].shape.elements());
  ParallelElements(pool, elements, [&](size_t chunk_begin, size_t chunk_end) {
    alignas(64) float in_copies[kMax][kNumbersPerPiece];
    alignas(64) float out_copies[kMax][kNumbersPerPiece];
    for (size_t begin = chunk_begin; begin < chunk_end; begin += piece_numbers) {
      NumberPiece piece{{}, {}, begin, std::min(piece_numbers, chunk_end - begin)};
      for (size_t i = 0; i < inputs.size(); ++i) {
        piece.in[i] = ReadNumbers(inputs[i], begin, piece.count, in_copies[i]);
      }
      for (size_t o = 0; o < outputs.size(); ++o) {
        piece.out[o] = RoomForNumbers(outputs[o], begin, out_copies[o]);
      }
      body(piece);
      for (size_t o = 0; o < outputs.size(); ++o) {
        WriteNumbers(piece.out[o], begin, piece.count, outputs[o]);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
