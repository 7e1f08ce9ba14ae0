// Reads and writes stored numbers of any type as floats, a piece at a time: kernels compute in
// floats only, and a tensor is never converted as a whole. A new storage type needs a case in
// numbers.cc.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "thimble/base/function_ref.h"
#include "thimble/tensor/number_pointer.h"
#include "thimble/tensor/rounding_draw.h"

namespace thimble {

class ThreadPool;

// Converts `count` numbers.
void DecodeNumbers(ConstNumbers from, size_t count, float* to);
// Rounds to the nearest, ties to even; from 65,520 on f16 becomes infinite.
void EncodeNumbers(const float* from, size_t count, Numbers to);
// Stochastic rounding (short_numbers.h) with 16 bits of each word, `shift` bits from its end.
void EncodeNumbersAtRandom(const float* from, size_t count, const uint32_t* words, int shift,
                           Numbers to);

// The same for several rows, which begin `stride` numbers apart.
struct NumberRows {
  size_t rows;
  size_t count;  // numbers in a row
  size_t from_stride;
  size_t to_stride;
};
void DecodeNumberRows(ConstNumbers from, const NumberRows& rows, float* to);
// Not q8.
void AddNumberRows(ConstNumbers from, const NumberRows& rows, float* to);
void EncodeNumberRows(const float* from, const NumberRows& rows, Numbers to);
// Stores `value` in all of them; from_stride is not used.
void FillNumberRows(float value, const NumberRows& rows, Numbers to);

// Rounds numbers as if they were stored in this type. Not q8.
void RoundNumbers(DType type, size_t count, float* numbers);

// A piece of a tensor as floats: the tensor itself if it stores f32, otherwise `copy`.
const float* ReadNumbers(ConstNumbers from, size_t count, float* copy);
// The same for results: where to write them, and what to call when they are there.
float* RoomForNumbers(Numbers to, float* copy);
void WriteNumbers(const float* room, size_t count, Numbers to);
// The size of a copy that stays in the first-level cache beside those of an op's other tensors.
inline constexpr size_t kNumbersPerPiece = 1024;

// The same piece of several tensors.
struct NumberPiece {
  static constexpr size_t kMaxTensors = 6;
  std::array<const float*, kMaxTensors> in;
  std::array<float*, kMaxTensors> out;
  size_t begin;
  size_t count;
};

// Calls body for pieces that cover tensors of the same number of elements, on all threads. An
// output may have the address of an input whose type has the same size. Packed tensors must share a
// pattern, and pieces cover the numbers that they store.
void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs,
                     FunctionRef<void(const NumberPiece&)> body);
// Copies all numbers: the stored bytes as they are, if both have one type. `to` may be `from`.
void CopyNumbers(ThreadPool& pool, const TensorView& from, const TensorView& to);
// How the results of a piece are rounded to the types of the outputs.
struct NumberRounding {
  // Of stochastic rounding; nullptr: to the nearest.
  const RoundingDraw* draw = nullptr;
  // If the tensors are ranges of larger ones: the place of their first number there, which decides
  // the draws. A multiple of RoundingDraw::kElementsPerDraw.
  size_t first_number = 0;
  // If the first output is not f32: called when it is written, with the numbers that it now stores,
  // before the other outputs are.
  using Written = FunctionRef<void(const NumberPiece&, const float* stored)>;
  const Written* first_written = nullptr;
};
void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, const NumberRounding& rounding,
                     FunctionRef<void(const NumberPiece&)> body);

}  // namespace thimble
