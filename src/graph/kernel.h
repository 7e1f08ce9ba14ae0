// Kernel: one implementation of an op on one device. The planner asks it whether it accepts a call
// and how much scratch it wants; the executor calls it with views into the arena. A kernel
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

struct CUstream_st;  // a CUDA stream, as its runtime calls it

namespace thimble {

class ThreadPool;

// Shapes and constants of one node: what shape rules, costs and kernels decide from.
struct OpCall {
  std::span<const Shape> inputs;
  std::span<const Shape> outputs;  // empty while the shape rule runs
  const Attributes& attributes;
};

// The room a kernel may plan for.
struct KernelLimits {
  int threads = 1;
  size_t scratch_bytes_per_thread = 1 << 20;
  friend bool operator==(const KernelLimits&, const KernelLimits&) = default;
};

// Everything one run of a kernel may touch. Inputs and outputs are in the order of the op's
// definition.
struct KernelCall {
  std::span<const TensorView> inputs;
  std::span<const TensorView> outputs;  // assigned, never added to; hold anything before
  const Attributes& attributes;
  // Exactly the planned size, 64-byte aligned. A kernel writes its last word in every run, so that
  // what is measured is what was booked.
  std::span<std::byte> scratch;
  ThreadPool& pool;               // kernels of the CPU work with these threads
  CUstream_st* stream = nullptr;  // kernels of CUDA launch here and do not wait

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
  // Empty, or what the user must have asked for: kernels that round differently are no one's
  // default.
  std::string_view option;
  // How far from the exact result it may be, as a multiple of a plain sum's distance.
  double rounding = 1;
  // Whether outputs of all sizes are added up on the way to each of them (Winograd): then the
  // largest decides how far all may be.
  bool mixes_outputs = false;
  // Empty where the kernel takes the call, otherwise why it declines.
  std::string_view (*declines)(const OpCall& call) = nullptr;
  size_t (*scratch_bytes)(const OpCall& call, const KernelLimits& limits) = nullptr;
  void (*run)(const KernelCall& call) = nullptr;
  // Null, or how the calls of consecutive steps are run at once, in the bits of running them one by
  // one. No call may touch what another one writes.
  void (*run_group)(std::span<const KernelCall> calls) = nullptr;
};

inline std::string_view Always(const OpCall& /*call*/) { return {}; }

// A kernel is a type with `static void Run(const KernelCall&)` and, where it needs them,
// `static std::string_view Declines(const OpCall&)`,
// `static size_t ScratchBytes(const OpCall&, const KernelLimits&)`,
// `static void RunGroup(std::span<const KernelCall>)` and `static constexpr std::string_view
// kOption`, `static constexpr double kRounding`, `static constexpr bool kMixesOutputs`; MakeKernel
// turns it into a row.
template <class Type>
constexpr Kernel MakeKernel(std::string_view name, DeviceKind device) {
  Kernel kernel;
  kernel.name = name;
  kernel.device = device;
  kernel.declines = &Always;
  kernel.run = &Type::Run;
  if constexpr (requires { &Type::Declines; }) kernel.declines = &Type::Declines;
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

// The same with a reason to decline that is not the type's own.
template <class Type>
constexpr Kernel MakeKernel(std::string_view name, DeviceKind device,
                            std::string_view (*declines)(const OpCall&)) {
  Kernel kernel = MakeKernel<Type>(name, device);
  kernel.declines = declines;
  return kernel;
}

}  // namespace thimble
