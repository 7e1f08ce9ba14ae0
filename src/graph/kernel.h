// Kernel: one implementation of an op on one device. The planner queries whether it accepts a call
// and how much scratch memory it needs; the executor calls it with views into the arena. A kernel
// allocates nothing.
//
// GPU code includes this header, so nothing that it includes may need fmt
// (tests/style/gpu_includes.sh).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "thimble/device/device_kind.h"
#include "thimble/graph/attributes.h"
#include "thimble/tensor/shape.h"
#include "thimble/tensor/tensor_view.h"

struct CUstream_st;  // the CUDA runtime's type of a stream

namespace thimble {

class ThreadPool;

// Shapes, constants and types of one node, on which shape rules, costs and kernels base their
// decisions.
struct OpCall {
  std::span<const Shape> inputs;
  std::span<const Shape> outputs;  // empty while the shape rule runs
  const Attributes& attributes;
  // Stored types; empty if all numbers are f32.
  std::span<const DType> input_types = {};
  std::span<const DType> output_types = {};
  bool has_packed = false;  // some tensors are packed (tensor/packed.h)

  DType input_type(size_t input) const { return TypeAt(input_types, input); }
  DType output_type(size_t output) const { return TypeAt(output_types, output); }

 private:
  static DType TypeAt(std::span<const DType> types, size_t index) {
    return types.empty() ? DType::kF32 : types[index];
  }
};

// Whether some numbers are stored in fewer than 32 bits.
inline bool HasShortNumbers(const OpCall& call) {
  const auto any = [](std::span<const DType> types) {
    for (const DType type : types) {
      if (IsShortNumber(type) || type == DType::kQ8) return true;
    }
    return false;
  };
  return any(call.input_types) || any(call.output_types);
}

// The resources a kernel may plan for.
struct KernelLimits {
  int threads = 1;
  size_t scratch_bytes_per_thread = 1 << 20;
  friend bool operator==(const KernelLimits&, const KernelLimits&) = default;
};

// Everything one run of a kernel may touch. Inputs and outputs are in the order of the op's
// definition.
struct KernelCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;  // overwritten, never added to; initially unspecified
  const Attributes& attributes;
  // Exactly the planned size, 64-byte aligned. A kernel must write its last word in every run,
  // because the audit measures memory by what was written.
  std::span<std::byte> scratch;
  ThreadPool& pool;               // threads for CPU kernels
  CUstream_st* stream = nullptr;  // CUDA kernels launch here and do not wait

  const Shape& in_shape(size_t input) const { return inputs[input].shape; }
  const Shape& out_shape(size_t output) const { return outputs[output].shape; }
  template <class T>
  const T* In(size_t input) const {
    return inputs[input].DataAs<const T>();
  }
  template <class T>
  T* Out(size_t output) const {
    return outputs[output].DataAs<T>();
  }
};

struct Kernel {
  std::string_view name;
  DeviceKind device = DeviceKind::kCpu;
  // Empty, or the option that enables this kernel: kernels that round differently are never chosen
  // by default.
  std::string_view option;
  // Allowed distance from the exact result, as a multiple of the error of a plain sum.
  double rounding = 1;
  // Whether each output is computed through sums that mix several outputs (Winograd): then the
  // largest output decides the allowed error of all.
  bool mixes_outputs = false;
  // Empty if the kernel accepts the call, otherwise the reason it declines.
  std::string_view (*declines)(const OpCall& call) = nullptr;
  size_t (*scratch_bytes)(const OpCall& call, const KernelLimits& limits) = nullptr;
  void (*run)(const KernelCall& call) = nullptr;
  // Null, or runs the calls of consecutive steps at once, with bit-identical results to running
  // them one by one. No call may access memory that another call writes.
  void (*run_group)(std::span<const KernelCall> calls) = nullptr;
};

inline std::string_view Always(const OpCall& /*call*/) { return {}; }

// Declines of a kernel type: its own, after short numbers and packed tensors unless it takes them.
template <class Type>
std::string_view DeclinesOf(const OpCall& call) {
  if constexpr (!requires { Type::kTakesPacked; }) {
    if (call.has_packed) return "takes dense tensors only";
  }
  if constexpr (!requires { Type::kTakesShortNumbers; }) {
    if (HasShortNumbers(call)) return "takes numbers of 32 bits only";
  }
  if constexpr (requires { &Type::Declines; }) return Type::Declines(call);
  return {};
}

// A kernel is a type with `static void Run(const KernelCall&)` and, if it needs them,
//   static std::string_view Declines(const OpCall&)
//   static size_t ScratchBytes(const OpCall&, const KernelLimits&)
//   static void RunGroup(std::span<const KernelCall>)
//   static constexpr bool kTakesShortNumbers = true   (numbers may have fewer than 32 bits)
//   static constexpr bool kTakesPacked = true         (weights, gradients, state may be packed)
//   static constexpr std::string_view kOption
//   static constexpr double kRounding
//   static constexpr bool kMixesOutputs
// MakeKernel makes a Kernel from it.
template <class Type>
constexpr Kernel MakeKernel(std::string_view name, DeviceKind device) {
  Kernel kernel;
  kernel.name = name;
  kernel.device = device;
  kernel.declines = &DeclinesOf<Type>;
  kernel.run = &Type::Run;
  if constexpr (requires { &Type::RunGroup; }) kernel.run_group = &Type::RunGroup;
  if constexpr (requires { Type::kOption; }) kernel.option = Type::kOption;
  if constexpr (requires { Type::kRounding; }) kernel.rounding = Type::kRounding;
  if constexpr (requires { Type::kMixesOutputs; }) kernel.mixes_outputs = Type::kMixesOutputs;
  if constexpr (requires { &Type::ScratchBytes; }) {
    kernel.scratch_bytes = &Type::ScratchBytes;
  } else {
    kernel.scratch_bytes = [](const OpCall&, const KernelLimits&) -> size_t { return 0; };
  }
  return kernel;
}

// The same with another function for `declines`.
template <class Type>
constexpr Kernel MakeKernel(std::string_view name, DeviceKind device,
                            std::string_view (*declines)(const OpCall&)) {
  Kernel kernel = MakeKernel<Type>(name, device);
  kernel.declines = declines;
  return kernel;
}

}  // namespace thimble
