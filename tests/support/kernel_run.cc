#include "tests/support/kernel_run.h"

#include <gtest/gtest.h>

#include <cstring>

#include "thimble/device/cpu/thread_pool.h"

namespace thimble {
namespace {

std::vector<std::byte> StoredBytes(const ReferenceTensor<double>& tensor, DType dtype) {
  std::vector<float> floats(tensor.numbers.begin(), tensor.numbers.end());
  const auto bytes_of = [](const auto& vector) {
    const auto* begin = reinterpret_cast<const std::byte*>(vector.data());
    return std::vector<std::byte>(begin, begin + vector.size() * sizeof(vector[0]));
  };
  if (dtype == DType::kI32) return bytes_of(tensor.integers);
  return dtype == DType::kU8 ? bytes_of(tensor.bytes) : bytes_of(floats);
}

bool SharesInput(const KernelRunOptions& options, size_t input) {
  for (const auto& [shared_output, shared_input] : options.in_place) {
    if (shared_input == input) return true;
  }
  return false;
}

// Inputs, outputs and scratch of one run.
class KernelMemory {
 public:
  KernelMemory(const PreparedCase& prepared, const Kernel& kernel,
               const std::vector<ReferenceTensor<double>>& inputs, const KernelRunOptions& options)
      : scratch(kernel.scratch_bytes(prepared.call(),
                                     {options.threads, options.scratch_bytes_per_thread})) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DType dtype = prepared.op.inputs()[i].dtype;
      stored.push_back(StoredBytes(inputs[i], dtype));
      buffers.emplace_back(stored[i].size());
      std::copy(stored[i].begin(), stored[i].end(), buffers[i].data());
      in.push_back({buffers[i].data(), dtype, prepared.op_case.inputs[i]});
    }
    for (size_t i = 0; i < prepared.outputs.size(); ++i) {
      out.push_back({nullptr, prepared.op.outputs()[i].dtype, prepared.outputs[i]});
      for (const auto& [output, input] : options.in_place) {
        if (output == i) out[i].data = in[input].data;
      }
      if (out[i].data != nullptr) continue;
      buffers.emplace_back(out[i].size_bytes());
      out[i].data = buffers.back().data();
    }
  }

  std::vector<std::vector<std::byte>> stored;  // what the inputs hold at first
  std::vector<GuardedBuffer> buffers;          // inputs first, then outputs of their own
  GuardedBuffer scratch;
  std::vector<TensorView> in;
  std::vector<TensorView> out;
};

}  // namespace

std::vector<std::vector<std::byte>> RunKernel(const PreparedCase& prepared, const Kernel& kernel,
                                              const std::vector<ReferenceTensor<double>>& inputs,
                                              const KernelRunOptions& options) {
  KernelMemory memory(prepared, kernel, inputs, options);
  ThreadPool pool(options.threads);
  kernel.run({memory.in, memory.out, prepared.attributes, memory.scratch.bytes(), pool});

  EXPECT_TRUE(memory.scratch.GuardsIntact()) << kernel.name << " wrote beside its scratch";
  EXPECT_TRUE(memory.scratch.LastWordWritten()) << kernel.name << " left the end of its scratch";
  for (size_t i = 0; i < memory.buffers.size(); ++i) {
    EXPECT_TRUE(memory.buffers[i].GuardsIntact())
        << kernel.name << " wrote beside tensor " << i << " (inputs first)";
  }
  for (size_t i = 0; i < memory.in.size(); ++i) {
    if (SharesInput(options, i) || memory.stored[i].empty()) continue;
    EXPECT_EQ(std::memcmp(memory.in[i].data, memory.stored[i].data(), memory.stored[i].size()), 0)
        << kernel.name << " changed its input " << i;
  }
  std::vector<std::vector<std::byte>> results;
  for (const TensorView& view : memory.out) {
    results.emplace_back(view.bytes().begin(), view.bytes().end());
  }
  return results;
}

}  // namespace thimble
