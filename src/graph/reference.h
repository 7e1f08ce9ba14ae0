// References: the formula of an op as scalar code, templated on the number type and never
// optimised. Run with float it is the last kernel of every op; with double and complex<double> it
// serves the gradient checks (complex step).
#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

// Floating-point tensors hold T here, regardless of their stored type; integer tensors keep their
// type.
template <class T>
struct ReferenceCall {
  OpCall op;
  std::span<const void* const> inputs;
  std::span<void* const> outputs;

  const Shape& in_shape(size_t input) const { return op.inputs[input]; }
  const Shape& out_shape(size_t output) const { return op.outputs[output]; }
  const T* In(size_t input) const { return static_cast<const T*>(inputs[input]); }
  template <class Integer>
  const Integer* InAs(size_t input) const {
    return static_cast<const Integer*>(inputs[input]);
  }
  T* Out(size_t output) const { return static_cast<T*>(outputs[output]); }
  template <class Integer>
  Integer* OutAs(size_t output) const {
    return static_cast<Integer*>(outputs[output]);
  }
};

// The part of a number that comparisons use.
inline double RealPart(double x) { return x; }
inline double RealPart(std::complex<double> x) { return x.real(); }

// An op's formula for the three number types.
struct ReferenceSet {
  void (*f32)(const ReferenceCall<float>&) = nullptr;
  void (*f64)(const ReferenceCall<double>&) = nullptr;
  void (*c128)(const ReferenceCall<std::complex<double>>&) = nullptr;
};

template <class T>
auto Select(const ReferenceSet& set) {
  if constexpr (std::is_same_v<T, float>) {
    return set.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return set.f64;
  } else {
    return set.c128;
  }
}

// From a type with `template <class T> static void Run(const ReferenceCall<T>&)`.
template <class Formula>
constexpr ReferenceSet MakeReference() {
  return {&Formula::template Run<float>, &Formula::template Run<double>,
          &Formula::template Run<std::complex<double>>};
}

}  // namespace thimble
