// Memory of the GPU for tests, and whether there is one. Without CUDA in the build there never is:
// support/without_cuda has the same functions, which say so.
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
  // Writes what it holds now to `bytes`, which are as many as it was made from.
  void CopyTo(std::span<std::byte> bytes) const;

 private:
  std::byte* data_ = nullptr;
};

enum class CudaLaunch {
  kDirect,
  kGraph,  // recorded first, as a training step is: waiting, allocating or another stream would
           // fail
};

// Calls `body` with a stream, and waits until what it launched there is done.
void RunOnCuda(CudaLaunch launch, FunctionRef<void(CUstream_st* stream)> body);

}  // namespace thimble
