#include "tests/support/run_op.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/kernel_run.h"
#include "tests/support/op_inputs.h"
#include "thimble/device/cpu/numbers.h"

namespace thimble {
namespace {

ReferenceTensor<double> ToTensor(const OpData& data, const Shape& shape) {
  EXPECT_EQ(data.floats.size() + data.integers.size(), static_cast<size_t>(shape.elements()));
  ReferenceTensor<double> tensor;
  tensor.numbers.assign(data.floats.begin(), data.floats.end());
  tensor.integers.assign(data.integers.begin(), data.integers.end());
  for (int integer : data.integers) tensor.bytes.push_back(static_cast<uint8_t>(integer));
  return tensor;
}

std::vector<float> NumbersIn(const std::vector<std::byte>& bytes, DType type, int64_t count) {
  std::vector<float> numbers(static_cast<size_t>(count));
  DecodeNumbers({bytes.data(), type}, numbers.size(), numbers.data());
  return numbers;
}

template <class T>
std::vector<T> Elements(const std::vector<std::byte>& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

std::vector<OpData> RunOpOn(const PreparedCase& prepared, const std::vector<OpData>& inputs,
                            const Kernel& kernel) {
  std::vector<ReferenceTensor<double>> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(ToTensor(inputs[i], prepared.op_case.inputs[i]));
  }
  const auto results = RunKernel(prepared, kernel, tensors, {});
  std::vector<OpData> outputs(results.size());
  for (size_t o = 0; o < results.size(); ++o) {
    const DType dtype = prepared.output_types[o];
    if (IsNumber(dtype) || dtype == DType::kQ8) {
      outputs[o].floats = NumbersIn(results[o], dtype, prepared.outputs[o].elements());
    }
    if (dtype == DType::kI32) outputs[o].integers = Elements<int>(results[o]);
    if (dtype == DType::kU8) {
      const auto bytes = Elements<uint8_t>(results[o]);
      outputs[o].integers.assign(bytes.begin(), bytes.end());
    }
  }
  return outputs;
}

}  // namespace

std::vector<OpData> RunOp(const OpCase& op_case, const std::vector<OpData>& inputs, size_t kernel,
                          DeviceKind device) {
  const PreparedCase prepared(op_case);
  if (!prepared.valid()) return {};
  std::vector<const Kernel*> kernels;
  for (const Kernel& candidate : prepared.op.kernels()) {
    if (candidate.device == device) kernels.push_back(&candidate);
  }
  return RunOpOn(prepared, inputs, *kernels.at(kernel));
}

std::vector<std::vector<OpData>> RunAllKernels(const OpCase& op_case,
                                               const std::vector<OpData>& inputs) {
  const PreparedCase prepared(op_case);
  std::vector<std::vector<OpData>> results;
  if (!prepared.valid()) return results;
  for (const Kernel& kernel : prepared.op.kernels()) {
    if (kernel.device == DeviceKind::kCuda && !HasCudaDevice()) continue;
    if (!kernel.declines(prepared.call()).empty()) continue;
    results.push_back(RunOpOn(prepared, inputs, kernel));
  }
  return results;
}

}  // namespace thimble
