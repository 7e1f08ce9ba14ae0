#include "tests/support/run_op.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/kernel_run.h"
#include "tests/support/op_inputs.h"

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

template <class T>
std::vector<T> Elements(const std::vector<std::byte>& bytes) {
  std::vector<T> elements(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return elements;
}

}  // namespace

std::vector<OpData> RunOp(const OpCase& op_case, const std::vector<OpData>& inputs, size_t kernel) {
  const PreparedCase prepared(op_case);
  if (!prepared.valid()) return {};
  std::vector<ReferenceTensor<double>> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors.push_back(ToTensor(inputs[i], op_case.inputs[i]));
  }
  const auto results = RunKernel(prepared, prepared.op.kernels()[kernel], tensors, {});
  std::vector<OpData> outputs(results.size());
  for (size_t o = 0; o < results.size(); ++o) {
    if (prepared.op.outputs()[o].dtype == DType::kF32) {
      outputs[o].floats = Elements<float>(results[o]);
    } else {
      outputs[o].integers = Elements<int>(results[o]);
    }
  }
  return outputs;
}

std::vector<std::vector<OpData>> RunAllKernels(const OpCase& op_case,
                                               const std::vector<OpData>& inputs) {
  std::vector<std::vector<OpData>> results;
  for (size_t kernel = 0; kernel < PreparedCase(op_case).op.kernels().size(); ++kernel) {
    results.push_back(RunOp(op_case, inputs, kernel));
  }
  return results;
}

}  // namespace thimble
