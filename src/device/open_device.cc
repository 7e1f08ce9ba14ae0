#include "thimble/device/cpu/cpu_device.h"
#include "thimble/device/cuda/open_cuda.h"
#include "thimble/device/device.h"

namespace thimble {

Result<std::unique_ptr<Device>> OpenDevice(DeviceKind kind, size_t arena_bytes) {
  return kind == DeviceKind::kCuda ? OpenCudaDevice(arena_bytes) : OpenCpuDevice(arena_bytes);
}

Result<void> CheckDevice(DeviceKind kind) {
  return kind == DeviceKind::kCuda ? CheckCudaDevice() : Result<void>();
}

Result<void> CheckDeviceIsBuilt(DeviceKind kind) {
  return kind == DeviceKind::kCuda ? CheckCudaIsBuilt() : Result<void>();
}

}  // namespace thimble
