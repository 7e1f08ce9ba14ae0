// Reads and writes stored numbers of any type as floats in GPU code: kernels compute in floats or
// on tensor cores, and a tensor is never converted as a whole. A new storage type needs a case
// here.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <type_traits>

#include "thimble/tensor/number_pointer.h"

namespace thimble {

__device__ inline float LoadNumber(const float* from) { return *from; }
__device__ inline float LoadNumber(const F16* from) {
  return __half2float(__ushort_as_half(from->bits));
}
__device__ inline float LoadNumber(const BF16* from) {
  return __bfloat162float(__ushort_as_bfloat16(from->bits));
}

// Rounds to the nearest, ties to even; from 65,520 on f16 becomes infinite.
__device__ inline void StoreNumber(float number, float* to) { *to = number; }
__device__ inline void StoreNumber(float number, F16* to) {
  to->bits = __half_as_ushort(__float2half_rn(number));
}
__device__ inline void StoreNumber(float number, BF16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(number));
}

// The same for a type that is known when the kernel runs.
__device__ inline float LoadNumber(ConstNumbers from) {
  switch (from.type) {
    case DType::kF16:
      return LoadNumber(static_cast<const F16*>(from.data));
    case DType::kBF16:
      return LoadNumber(static_cast<const BF16*>(from.data));
    default:
      return *from.floats();
  }
}
__device__ inline void StoreNumber(float number, Numbers to) {
  switch (to.type) {
    case DType::kF16:
      return StoreNumber(number, static_cast<F16*>(to.data));
    case DType::kBF16:
      return StoreNumber(number, static_cast<BF16*>(to.data));
    default:
      *to.floats() = number;
  }
}

// Two numbers of 16 bits in a word, the first in its lower half.
template <class Short>
__device__ float2 DecodeTwo(uint32_t word) {
  if constexpr (std::is_same_v<Short, F16>) {
    return __half22float2(reinterpret_cast<const __half2&>(word));
  } else {
    static_assert(std::is_same_v<Short, BF16>);
    return make_float2(__uint_as_float(word << 16), __uint_as_float(word & 0xFFFF0000U));
  }
}
template <class Short>
__device__ uint32_t EncodeTwo(float first, float second) {
  if constexpr (std::is_same_v<Short, F16>) {
    const __half2 two = __floats2half2_rn(first, second);
    return reinterpret_cast<const uint32_t&>(two);
  } else {
    static_assert(std::is_same_v<Short, BF16>);
    const __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
    return reinterpret_cast<const uint32_t&>(two);
  }
}

// ---- Kernels for one storage type, and for any

// In place of float, F16 or BF16: a type that is known when the kernel runs. Slower; one such
// kernel serves all calls whose tensors have different types.
struct AnyNumber {};

// The address of such numbers. GPU code takes types of 32 and 16 bits only, which makes it simple
// to find an element.
template <class Void>
struct AnyPointer : NumberPointer<Void> {
  AnyPointer() = default;
  constexpr AnyPointer(NumberPointer<Void> numbers)  // NOLINT(google-explicit-constructor)
      : NumberPointer<Void>(numbers) {}

  __device__ AnyPointer operator+(int64_t elements) const {
    auto* bytes = static_cast<typename NumberPointer<Void>::Byte*>(this->data);
    return NumberPointer<Void>(bytes + (this->is_float() ? 4 : 2) * elements, this->type);
  }
};

template <class Storage>
using InNumbers =
    std::conditional_t<std::is_same_v<Storage, AnyNumber>, AnyPointer<const void>, const Storage*>;
template <class Storage>
using OutNumbers =
    std::conditional_t<std::is_same_v<Storage, AnyNumber>, AnyPointer<void>, Storage*>;

// The address as such a kernel takes it. Requires numbers of that type.
template <class Storage>
constexpr InNumbers<Storage> As(ConstNumbers numbers) {
  if constexpr (std::is_same_v<Storage, AnyNumber>) {
    return numbers;
  } else {
    return static_cast<const Storage*>(numbers.data);
  }
}
template <class Storage>
constexpr OutNumbers<Storage> As(Numbers numbers) {
  if constexpr (std::is_same_v<Storage, AnyNumber>) {
    return numbers;
  } else {
    return static_cast<Storage*>(numbers.data);
  }
}

// ---- Several numbers at once

// Words that are read and written at once.
template <int kCount, class Word = uint32_t>
struct alignas(kCount >= 4 ? 16 : 4 * kCount) Words {
  Word at[kCount];
};

// kCount neighbouring numbers as they are stored, which takes the fewest registers; [] decodes one.
template <class Storage, int kCount>
struct Pack {
  Words<kCount / 2> words;

  __device__ float operator[](int i) const {
    const float2 two = DecodeTwo<Storage>(words.at[i / 2]);
    return i % 2 == 0 ? two.x : two.y;
  }
};
template <int kCount>
struct Pack<float, kCount> {
  Words<kCount, float> words;

  __device__ float operator[](int i) const { return words.at[i]; }
};
template <int kCount>
struct Pack<AnyNumber, kCount> {
  Words<kCount> words;  // half of them if the numbers have 16 bits
  DType type;

  __device__ float operator[](int i) const {
    if (type == DType::kF32) return __uint_as_float(words.at[i]);
    const uint32_t word = words.at[i / 2];
    const float2 two = type == DType::kF16 ? DecodeTwo<F16>(word) : DecodeTwo<BF16>(word);
    return i % 2 == 0 ? two.x : two.y;
  }
};

// Requires an address that is a multiple of kCount numbers, at most of 16 bytes. A type of 16 bits
// requires an even count, unless it is known only when the kernel runs.
template <int kCount, class Storage>
__device__ Pack<Storage, kCount> LoadPack(const Storage* from) {
  return *reinterpret_cast<const Pack<Storage, kCount>*>(from);
}
template <int kCount>
__device__ Pack<AnyNumber, kCount> LoadPack(ConstNumbers from) {
  Pack<AnyNumber, kCount> pack;
  pack.type = from.type;
  if (from.is_float()) {
    pack.words = *static_cast<const Words<kCount>*>(from.data);
  } else if constexpr (kCount == 1) {
    pack.words.at[0] = *static_cast<const uint16_t*>(from.data);
  } else {
    const auto words = *static_cast<const Words<kCount / 2>*>(from.data);
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i) pack.words.at[i] = words.at[i];
  }
  return pack;
}

template <int kCount, class Short>
__device__ void StorePack(const float (&numbers)[kCount], Short* to) {
  Words<kCount / 2> words;
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) {
    words.at[i] = EncodeTwo<Short>(numbers[2 * i], numbers[2 * i + 1]);
  }
  *reinterpret_cast<Words<kCount / 2>*>(to) = words;
}
template <int kCount>
__device__ void StorePack(const float (&numbers)[kCount], float* to) {
  Words<kCount, float> words;
#pragma unroll
  for (int i = 0; i < kCount; ++i) words.at[i] = numbers[i];
  *reinterpret_cast<Words<kCount, float>*>(to) = words;
}
template <int kCount>
__device__ void StorePack(const float (&numbers)[kCount], Numbers to) {
  if (to.is_float()) {
    StorePack(numbers, to.floats());
  } else if constexpr (kCount == 1) {
    StoreNumber(numbers[0], to);
  } else if (to.type == DType::kF16) {
    StorePack(numbers, static_cast<F16*>(to.data));
  } else {
    StorePack(numbers, static_cast<BF16*>(to.data));
  }
}

// Four of a known type. Requires an address that is a multiple of four numbers.
template <class Storage>
__device__ float4 LoadFour(const Storage* from) {
  const auto pack = LoadPack<4>(from);
  return make_float4(pack[0], pack[1], pack[2], pack[3]);
}
template <class Storage>
__device__ void StoreFour(const float4& numbers, Storage* to) {
  StorePack({numbers.x, numbers.y, numbers.z, numbers.w}, to);
}

// ---- Choosing a kernel for the types of a call

// Calls body with a value of the C++ type that stores numbers of this type: float, F16 or BF16.
template <class Body>
void WithStorage(DType type, const Body& body) {
  switch (type) {
    case DType::kF32:
      return body(float{});
    case DType::kF16:
      return body(F16{});
    case DType::kBF16:
      return body(BF16{});
    default:
      FailForOtherType(type, DType::kF32);
  }
}

// The same for several tensors: AnyNumber{} if their types differ.
template <class Body>
void WithCommonStorage(std::span<const DType> types, const Body& body) {
  for (const DType type : types) {
    if (type != types.front()) return body(AnyNumber{});
  }
  WithStorage(types.front(), body);
}

// For kernels that are rarely used with 16 bits: float{} or AnyNumber{}.
template <class Body>
void WithFloatsOrAny(std::span<const DType> types, const Body& body) {
  for (const DType type : types) {
    if (type != DType::kF32) return body(AnyNumber{});
  }
  body(float{});
}

}  // namespace thimble
