// Opens a CUDA device. Builds without CUDA have the same functions, which return an error
// (device/without_cuda).
#pragma once

#include <cstddef>
#include <memory>

#include "thimble/base/result.h"
#include "thimble/device/device.h"

namespace thimble {

// The first GPU, with an arena of exactly this size.
Result<std::unique_ptr<Device>> OpenCudaDevice(size_t arena_bytes);
// Checks that there is a GPU that this program has code for.
Result<void> CheckCudaDevice();
Result<void> CheckCudaIsBuilt();

}  // namespace thimble
