#include "tests/support/kernel_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "thimble/device/cpu/thread_pool.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

template <class Short>
std::vector<Short> Shortened(const std::vector<double>& numbers, Short (*shorten)(float)) {
  std::vector<Short> shortened;
  shortened.reserve(numbers.size());
  for (const double number : numbers) shortened.push_back(shorten(static_cast<float>(number)));
  return shortened;
}

std::vector<std::byte> StoredBytes(const ReferenceTensor<double>& tensor, DType dtype) {
  const auto bytes_of = [](const auto& vector) {
    const auto* begin = reinterpret_cast<const std::byte*>(vector.data());
    return std::vector<std::byte>(begin, begin + vector.size() * sizeof(vector[0]));
  };
  if (dtype == DType::kI32) return bytes_of(tensor.integers);
  if (dtype == DType::kF16) return bytes_of(Shortened(tensor.numbers, ToF16));
  if (dtype == DType::kBF16) return bytes_of(Shortened(tensor.numbers, ToBF16));
  if (dtype == DType::kU8) return bytes_of(tensor.bytes);
  return bytes_of(std::vector<float>(tensor.numbers.begin(), tensor.numbers.end()));
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
      const DType dtype = prepared.input_types[i];
      stored.push_back(StoredBytes(inputs[i], dtype));
      buffers.emplace_back(stored[i].size());
      std::copy(stored[i].begin(), stored[i].end(), buffers[i].data());
      in.push_back({buffers[i].data(), dtype, prepared.op_case.inputs[i]});
    }
    for (size_t i = 0; i < prepared.outputs.size(); ++i) {
      out.push_back({nullptr, prepared.output_types[i], prepared.outputs[i]});
      for (const auto& [output, input] : options.in_place) {
        if (output == i) out[i].data = in[input].data;
      }
      if (out[i].data != nullptr) continue;
      buffers.emplace_back(out[i].size_bytes());
      out[i].data = buffers.back().data();
    }
  }

  std::vector<std::vector<std::byte>> stored;  // initial contents of the inputs
  std::vector<GuardedBuffer> buffers;          // inputs, then outputs that reuse no input
  GuardedBuffer scratch;
  std::vector<TensorView> in;
  std::vector<TensorView> out;
};

// Copies of all buffers, including guards, in GPU memory.
class CudaTwin {
 public:
  explicit CudaTwin(KernelMemory& memory) : memory_(memory), scratch_(Copy(memory.scratch)) {
    for (GuardedBuffer& buffer : memory.buffers) buffers_.push_back(Copy(buffer));
  }

  std::vector<TensorView> TwinsOf(std::vector<TensorView> views) const {
    for (TensorView& view : views) {
      for (size_t i = 0; i < buffers_.size(); ++i) {
        if (view.data != memory_.buffers[i].data()) continue;
        view.data = buffers_[i].data() + GuardedBuffer::kGuardBytes;
        break;
      }
    }
    return views;
  }
  std::span<std::byte> scratch() const {
    return {scratch_.data() + GuardedBuffer::kGuardBytes, memory_.scratch.bytes().size()};
  }
  void CopyBack() const {
    scratch_.CopyTo(memory_.scratch.bytes_and_guards());
    for (size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i].CopyTo(memory_.buffers[i].bytes_and_guards());
    }
  }

 private:
  static CudaMemory Copy(GuardedBuffer& buffer) { return CudaMemory(buffer.bytes_and_guards()); }

  KernelMemory& memory_;
  CudaMemory scratch_;
  std::vector<CudaMemory> buffers_;
};

void RunOnDevice(const PreparedCase& prepared, const Kernel& kernel,
                 const KernelRunOptions& options, KernelMemory& memory) {
  ThreadPool& pool = PoolOf(options.threads);
  if (kernel.device == DeviceKind::kCpu) {
    kernel.run({memory.in, memory.out, prepared.attributes, memory.scratch.bytes(), pool});
    return;
  }
  const CudaTwin twin(memory);
  const auto in = twin.TwinsOf(memory.in);
  const auto out = twin.TwinsOf(memory.out);
  RunOnCuda(options.launch, [&](CUstream_st* stream) {
    kernel.run({in, out, prepared.attributes, twin.scratch(), pool, stream});
  });
  twin.CopyBack();
}

}  // namespace

ThreadPool& PoolOf(int threads) {
  static std::map<int, ThreadPool> pools;
  return pools.try_emplace(threads, threads).first->second;
}

std::vector<std::vector<std::byte>> RunKernel(const PreparedCase& prepared, const Kernel& kernel,
                                              const std::vector<ReferenceTensor<double>>& inputs,
                                              const KernelRunOptions& options) {
  KernelMemory memory(prepared, kernel, inputs, options);
  RunOnDevice(prepared, kernel, options, memory);

  EXPECT_TRUE(memory.scratch.GuardsIntact()) << kernel.name << " wrote outside its scratch";
  EXPECT_TRUE(memory.scratch.LastWordWritten()) << kernel.name << " left the end of its scratch";
  for (size_t i = 0; i < memory.buffers.size(); ++i) {
    EXPECT_TRUE(memory.buffers[i].GuardsIntact())
        << kernel.name << " wrote outside tensor " << i << " (inputs first)";
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
