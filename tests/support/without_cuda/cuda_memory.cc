#include "tests/support/cuda_memory.h"

#include "thimble/base/check.h"

namespace thimble {

bool HasCudaDevice() { return false; }

CudaMemory::CudaMemory(std::span<const std::byte> /*bytes*/) {
  THIMBLE_CHECK(false, "built without CUDA");
}
CudaMemory::~CudaMemory() = default;
CudaMemory::CudaMemory(CudaMemory&& other) noexcept : data_(other.data_) {}
void CudaMemory::CopyTo(std::span<std::byte> /*bytes*/) const {}

void RunOnCuda(CudaLaunch /*launch*/, FunctionRef<void(CUstream_st*)> /*body*/) {
  THIMBLE_CHECK(false, "built without CUDA");
}

}  // namespace thimble
