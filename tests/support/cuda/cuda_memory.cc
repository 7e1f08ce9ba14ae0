#include "tests/support/cuda_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "thimble/device/cuda/check.h"

namespace thimble {
namespace {

void RunGraph(cudaStream_t stream, FunctionRef<void(CUstream_st*)> body) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  THIMBLE_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  body(stream);
  THIMBLE_CUDA(cudaStreamEndCapture(stream, &graph));
  THIMBLE_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  THIMBLE_CUDA(cudaGraphLaunch(executable, stream));
  THIMBLE_CUDA(cudaStreamSynchronize(stream));
  THIMBLE_CUDA(cudaGraphExecDestroy(executable));
  THIMBLE_CUDA(cudaGraphDestroy(graph));
}

}  // namespace

bool HasCudaDevice() {
  static const bool has_device = [] {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  }();
  return has_device;
}

CudaMemory::CudaMemory(std::span<const std::byte> bytes) {
  void* data = nullptr;
  THIMBLE_CUDA(cudaMalloc(&data, std::max<size_t>(1, bytes.size())));
  data_ = static_cast<std::byte*>(data);
  THIMBLE_CUDA(cudaMemcpy(data_, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
}

CudaMemory::~CudaMemory() {
  if (data_ != nullptr) THIMBLE_CUDA(cudaFree(data_));
}

CudaMemory::CudaMemory(CudaMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}

void CudaMemory::CopyTo(std::span<std::byte> bytes) const {
  THIMBLE_CUDA(cudaMemcpy(bytes.data(), data_, bytes.size(), cudaMemcpyDeviceToHost));
}

void RunOnCuda(CudaLaunch launch, FunctionRef<void(CUstream_st*)> body) {
  // Copies from pageable memory may still be in progress.
  THIMBLE_CUDA(cudaDeviceSynchronize());
  cudaStream_t stream = nullptr;
  THIMBLE_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  if (launch == CudaLaunch::kGraph) {
    RunGraph(stream, body);
  } else {
    body(stream);
    THIMBLE_CUDA(cudaStreamSynchronize(stream));
  }
  THIMBLE_CUDA(cudaStreamDestroy(stream));
}

}  // namespace thimble
