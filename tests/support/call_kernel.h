// Calls one kernel of an op on given views, dense or packed, with guarded scratch. The views of a
// CUDA kernel are in the GPU's memory (cuda_copies.h).
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string_view>
#include <vector>

#include "tests/support/cuda_memory.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/kernel_run.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {

// A dense tensor with guards around it.
class TestTensor {
 public:
  TestTensor(const Shape& shape, DType dtype)
      : shape_(shape),
        dtype_(dtype),
        buffer_(StorageBytes(dtype, static_cast<size_t>(shape.elements()))) {}
  TestTensor(const Shape& shape, DType dtype, const std::vector<float>& numbers)
      : TestTensor(shape, dtype) {
    EncodeNumbers(numbers.data(), numbers.size(), NumbersOf(View()));
  }
  static TestTensor Integer(int32_t integer) {
    TestTensor tensor(Shape{1}, DType::kI32);
    *tensor.View().DataAs<int32_t>() = integer;
    return tensor;
  }

  TensorView View() { return {buffer_.data(), dtype_, shape_}; }
  std::vector<float> Numbers() {
    std::vector<float> numbers(static_cast<size_t>(shape_.elements()));
    DecodeNumbers(ConstNumbersOf(View()), numbers.size(), numbers.data());
    return numbers;
  }
  bool GuardsIntact() const { return buffer_.GuardsIntact(); }
  std::span<std::byte> bytes_and_guards() { return buffer_.bytes_and_guards(); }

 private:
  Shape shape_;
  DType dtype_;
  GuardedBuffer buffer_;
};

struct KernelCallSpec {
  std::string_view op;
  std::string_view kernel;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  Attributes attributes;  // missing ones have the op's defaults
};

inline void CallKernel(const KernelCallSpec& spec, const KernelLimits& limits) {
  const OpDef& op = BuiltinOps().Get(spec.op);
  const Kernel* kernel = nullptr;
  for (const Kernel& candidate : op.kernels()) {
    if (candidate.name == spec.kernel) kernel = &candidate;
  }
  ASSERT_NE(kernel, nullptr) << spec.kernel;
  Attributes attributes = op.default_attributes();
  for (const auto& [name, value] : spec.attributes.entries()) {
    if (attributes.Find(name) != nullptr) attributes.Set(name, value);
  }
  bool has_packed = false;
  std::vector<Shape> in_shapes, out_shapes;
  std::vector<DType> in_types, out_types;
  for (const TensorView& view : spec.inputs) {
    in_shapes.push_back(view.shape);
    in_types.push_back(view.dtype);
    has_packed |= view.is_packed();
  }
  for (const TensorView& view : spec.outputs) {
    out_shapes.push_back(view.shape);
    out_types.push_back(view.dtype);
    has_packed |= view.is_packed();
  }
  const auto shapes = op.InferShapes({in_shapes, {}, attributes});
  ASSERT_TRUE(shapes.ok()) << shapes.error().message;
  ASSERT_EQ(*shapes, out_shapes);
  const OpCall call{in_shapes, out_shapes, attributes, in_types, out_types, has_packed};
  ASSERT_EQ(kernel->declines(call), "");
  GuardedBuffer scratch(kernel->scratch_bytes(call, limits));
  ThreadPool& pool = PoolOf(limits.threads);
  if (kernel->device == DeviceKind::kCuda) {
    const CudaMemory copy(scratch.bytes_and_guards());
    const std::span own(copy.data() + GuardedBuffer::kGuardBytes, scratch.bytes().size());
    RunOnCuda(CudaLaunch::kGraph, [&](CUstream_st* stream) {
      kernel->run({spec.inputs, spec.outputs, attributes, own, pool, stream});
    });
    copy.CopyTo(scratch.bytes_and_guards());
  } else {
    kernel->run({spec.inputs, spec.outputs, attributes, scratch.bytes(), pool});
  }
  EXPECT_TRUE(scratch.GuardsIntact()) << spec.kernel << " wrote outside its scratch";
  EXPECT_TRUE(scratch.LastWordWritten()) << spec.kernel << " left the end of its scratch";
}

}  // namespace thimble
