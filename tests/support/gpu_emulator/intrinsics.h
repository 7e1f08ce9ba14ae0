// Qualifiers of CUDA C++, and its functions of one thread.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <source_location>
#include <type_traits>

#include "tests/support/gpu_emulator/block.h"
#include "tests/support/gpu_emulator/shared_memory.h"

// ---- Qualifiers; the toolkit defines the others, as nothing.

#undef __launch_bounds__
#define __launch_bounds__(...)
// Also an attribute of g++, which libraries use.
#define __noinline__

// ---- Bits

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float number) { return std::bit_cast<unsigned>(number); }
inline int __float_as_int(float number) { return std::bit_cast<int>(number); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline long long __double_as_longlong(double number) { return std::bit_cast<long long>(number); }
inline int __popc(unsigned word) { return std::popcount(word); }
inline int __popcll(unsigned long long word) { return std::popcount(word); }
inline int __clz(int word) { return std::countl_zero(static_cast<unsigned>(word)); }
inline int __clzll(long long word) {
  return std::countl_zero(static_cast<unsigned long long>(word));
}
inline int __ffs(int word) { return __builtin_ffs(word); }
inline int __ffsll(long long word) { return __builtin_ffsll(word); }
inline unsigned __brev(unsigned word) {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (word >> bit & 1U) << (31 - bit);
  return reversed;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) >> (by & 31U));
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
  return static_cast<unsigned>((uint64_t{high} << 32 | low) << (by & 31U) >> 32);
}
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selectors) {
  const uint64_t bytes = uint64_t{high} << 32 | low;
  unsigned chosen = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned selector = selectors >> (4 * i) & 0xFU;
    unsigned byte = static_cast<unsigned>(bytes >> (8 * (selector & 7U))) & 0xFFU;
    if (selector >= 8) byte = (byte & 0x80U) != 0 ? 0xFFU : 0;  // copies of the sign
    chosen |= byte << (8 * i);
  }
  return chosen;
}

// ---- Integers

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(int64_t{a} * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(Wide{a} * b >> 64);
}

template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> min(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmin(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
requires(std::is_arithmetic_v<A>&& std::is_arithmetic_v<B>) constexpr std::common_type_t<A, B> max(
    A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmax(static_cast<T>(a), static_cast<T>(b));
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

// ---- Memory

template <class T>
T __ldg(const T* place) {
  return *place;
}
template <class T>
T __ldcg(const T* place) {
  return *place;
}
template <class T>
T __ldcs(const T* place) {
  return *place;
}
template <class T>
void __stcs(T* place, const T& value) {
  *place = value;
}
template <class T>
void __stcg(T* place, const T& value) {
  *place = value;
}
inline size_t __cvta_generic_to_shared(const void* place) {
  return gpu_emulator::SharedAddress(place);
}

// ---- Floating point, rounded once each. Functions that are approximate on a GPU are exact here.

inline float rsqrtf(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0 ? std::fmin(x, 1.0F) : 0.0F; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
// Out of range: the nearest integer of the type; NaN: 0.
template <class Integer>
Integer ToInteger(double rounded) {
  constexpr double kEnd = -2.0 * static_cast<double>(std::numeric_limits<int>::min());
  if (std::isnan(rounded)) return 0;
  const double last = std::is_signed_v<Integer> ? kEnd / 2 - 1 : kEnd - 1;
  const double first = std::is_signed_v<Integer> ? -kEnd / 2 : 0;
  return static_cast<Integer>(std::clamp(rounded, first, last));
}
inline int __float2int_rn(float x) { return ToInteger<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return ToInteger<int>(std::trunc(x)); }
inline int __float2int_rd(float x) { return ToInteger<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return ToInteger<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return ToInteger<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return ToInteger<unsigned>(std::trunc(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

// Macros, because the C library declares functions with these names for its own use.
#define __expf(x) std::exp(static_cast<float>(x))
#define __exp10f(x) exp10f(x)
#define __logf(x) std::log(static_cast<float>(x))
#define __log2f(x) std::log2(static_cast<float>(x))
#define __log10f(x) std::log10(static_cast<float>(x))
#define __powf(x, y) std::pow(static_cast<float>(x), static_cast<float>(y))
#define __sinf(x) std::sin(static_cast<float>(x))
#define __cosf(x) std::cos(static_cast<float>(x))

// ---- Control

inline void __nanosleep(unsigned /*nanoseconds*/,
                        const std::source_location& where = std::source_location::current()) {
  gpu_emulator::Pause({"__nanosleep", where});
}
[[noreturn]] inline void __trap() { gpu_emulator::Fail("the kernel called __trap"); }
