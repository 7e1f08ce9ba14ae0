// GPU memory for tests, and whether there is a GPU. In builds without CUDA there is none:
// support/without_cuda has the same functions.
#pragma once

#include <cstddef>
#include <span>

#include "thimble/base/function_ref.h"

struct CUstream_st;

namespace thimble {

bool HasCudaDevice();

// A copy of some bytes in the GPU's memory; at least 256-byte aligned.
class CudaMemory {
 public:
  // Requires a device.
  explicit CudaMemory(std::span<const std::byte> bytes);
  ~CudaMemory();
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;
  CudaMemory(CudaMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  // Copies its contents to `bytes`, whose size must be the original size.
  void CopyTo(std::span<std::byte> bytes) const;

 private:
  std::byte* data_ = nullptr;
};

enum class CudaLaunch {
  kDirect,
  kGraph,  // recorded as a graph, like a training step: waiting, allocating and other streams fail
};

// Calls `body` with a stream and waits until its work is done.
void RunOnCuda(CudaLaunch launch, FunctionRef<void(CUstream_st* stream)> body);

}  // namespace thimble
