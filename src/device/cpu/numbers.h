// Reads and writes stored numbers of any type as floats, a piece at a time: kernels compute in
// floats only, and a tensor is never converted as a whole. A new storage type needs a case in
// numbers.cc.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

#include "thimble/base/function_ref.h"
#include "thimble/tensor/tensor_view.h"

namespace thimble {

class ThreadPool;

// The address of numbers of any storage type.
template <class Void>
struct NumberPointer {
  Void* data = nullptr;
  DType type = DType::kF32;

  NumberPointer operator+(size_t elements) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    return {static_cast<Byte*>(data) + elements * SizeBytes(type), type};
  }
};
using Numbers = NumberPointer<void>;
using ConstNumbers = NumberPointer<const void>;
inline Numbers NumbersOf(const TensorView& view) { return {view.data, view.dtype}; }
inline ConstNumbers ConstNumbersOf(const TensorView& view) { return {view.data, view.dtype}; }

// Converts `count` numbers from the given index on.
void DecodeNumbers(const TensorView& from, size_t begin, size_t count, float* to);
// Rounds to the nearest, ties to even; from 65,520 on f16 becomes infinite.
void EncodeNumbers(const float* from, size_t begin, size_t count, const TensorView& to);

// A piece of a tensor as floats: the tensor itself if it stores f32, otherwise `copy`.
const float* ReadNumbers(const TensorView& from, size_t begin, size_t count, float* copy);
// The same for results: where to write them, and what to call when they are there.
float* RoomForNumbers(const TensorView& to, size_t begin, float* copy);
void WriteNumbers(const float* room, size_t begin, size_t count, const TensorView& to);
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
// output may have the address of an input of the same type.
void ParallelNumbers(ThreadPool& pool, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs,
                     FunctionRef<void(const NumberPiece&)> body);

}  // namespace thimble
