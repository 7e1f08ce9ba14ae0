#include "thimble/device/cpu/numbers.h"

#include <algorithm>

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

template <class Stored>
HWY_INLINE void DecodeRows(const Stored* from, const NumberRows& rows, float* to) {
  for (size_t row = 0; row < rows.rows; ++row) {
    Decode(from + row * rows.from_stride, rows.count, to + row * rows.to_stride);
  }
}

template <class Stored>
HWY_INLINE void EncodeRows(const float* from, const NumberRows& rows, Stored* to) {
  for (size_t row = 0; row < rows.rows; ++row) {
    Encode(from + row * rows.from_stride, rows.count, to + row * rows.to_stride);
  }
}

void DecodeAll(ConstNumbers from, const NumberRows& rows, float* to) {
  VisitNumbers(from, [&](const auto* stored) HWY_ATTR { DecodeRows(stored, rows, to); });
}

void EncodeAll(const float* from, const NumberRows& rows, Numbers to) {
  VisitNumbers(to, [&](auto* stored) HWY_ATTR { EncodeRows(from, rows, stored); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace thimble
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace thimble {

HWY_EXPORT(DecodeAll);
HWY_EXPORT(EncodeAll);

void DecodeNumberRows(ConstNumbers from, const NumberRows& rows, float* to) {
  HWY_DYNAMIC_DISPATCH(DecodeAll)(from, rows, to);
}

void EncodeNumberRows(const float* from, const NumberRows& rows, Numbers to) {
  HWY_DYNAMIC_DISPATCH(EncodeAll)(from, rows, to);
}

void DecodeNumbers(ConstNumbers from, size_t count, float* to) {
  DecodeNumberRows(from, {.rows = 1, .count = count, .from_stride = 0, .to_stride = 0}, to);
}

void EncodeNumbers(const float* from, size_t count, Numbers to) {
  EncodeNumberRows(from, {.rows = 1, .count = count, .from_stride = 0, .to_stride = 0}, to);
}

const float* ReadNumbers(ConstNumbers from, size_t count, float* copy) {
  if (from.is_float()) return from.floats();
  DecodeNumbers(from, count, copy);
  return copy;
}

float* RoomForNumbers(Numbers to, float* copy) { return to.is_float() ? to.floats() : copy; }

void WriteNumbers(const float* room, size_t count, Numbers to) {
  if (!to.is_float()) EncodeNumbers(room, count, to);
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
        piece.in[i] = ReadNumbers(ConstNumbersOf(inputs[i]) + begin, piece.count, in_copies[i]);
      }
      for (size_t o = 0; o < outputs.size(); ++o) {
        piece.out[o] = RoomForNumbers(NumbersOf(outputs[o]) + begin, out_copies[o]);
      }
      body(piece);
      for (size_t o = 0; o < outputs.size(); ++o) {
        WriteNumbers(piece.out[o], piece.count, NumbersOf(outputs[o]) + begin);
      }
    }
  });
}

}  // namespace thimble
#endif  // HWY_ONCE
