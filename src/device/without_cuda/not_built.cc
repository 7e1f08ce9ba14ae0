#include "thimble/device/cuda/open_cuda.h"

namespace thimble {

Result<void> CheckCudaIsBuilt() {
  return BadInput(
      "--device cuda: this program was built without CUDA; build it where nvcc is installed "
      "(CONTRIBUTING.md)");
}

Result<void> CheckCudaDevice() { return CheckCudaIsBuilt(); }

Result<std::unique_ptr<Device>> OpenCudaDevice(size_t /*arena_bytes*/) {
  return CheckCudaIsBuilt().error();
}

}  // namespace thimble
