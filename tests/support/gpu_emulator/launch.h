// Launches of kernels, as translate.py writes them.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/support/gpu_emulator/block.h"

namespace gpu_emulator {

// Runs or records a kernel on a stream; cudaGetLastError says whether it was accepted.
void Enqueue(cudaStream_t stream, const Grid& grid, std::function<void()> thread);

// Launch(name, kernel).On(blocks, threads, shared_bytes, stream).Run(arguments...) is
// kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...).
template <class Kernel>
class Launch {
 public:
  Launch(const char* name, Kernel kernel) : kernel_(std::move(kernel)) { grid_.kernel = name; }

  Launch& On(dim3 blocks, dim3 threads, size_t shared_bytes = 0, cudaStream_t stream = nullptr) {
    grid_.blocks = blocks;
    grid_.threads = threads;
    grid_.shared_bytes = shared_bytes;
    stream_ = stream;
    return *this;
  }
  template <class... Arguments>
  void Run(const Arguments&... arguments) {
    Enqueue(stream_, grid_,
            [kernel = kernel_, values = std::tuple<std::decay_t<Arguments>...>(arguments...)] {
              std::apply(kernel, values);
            });
  }

 private:
  Kernel kernel_;
  Grid grid_;
  cudaStream_t stream_ = nullptr;
};

// Returns whether this GPU has all the attributes.
cudaError_t CheckAttributes(const cudaLaunchConfig_t& config);

template <class... Parameters, class... Arguments>
cudaError_t LaunchWithConfig(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                             const Arguments&... arguments) {
  const cudaError_t code = CheckAttributes(*config);
  if (code != cudaSuccess) return code;
  Launch("a kernel of cudaLaunchKernelEx", kernel)
      .On(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream)
      .Run(Parameters(arguments)...);
  return cudaGetLastError();
}

}  // namespace gpu_emulator

#define cudaLaunchKernelEx ::gpu_emulator::LaunchWithConfig

// The toolkit has these templates for nvcc only.
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t size_bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return ::cudaMemcpyFromSymbolAsync(to, static_cast<const void*>(&symbol), size_bytes, offset,
                                     kind, stream);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t size_bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return ::cudaMemcpyToSymbolAsync(static_cast<const void*>(&symbol), from, size_bytes, offset,
                                   kind, stream);
}
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
