#include <cstdint>

#include "thimble/device/cuda/elements.cuh"
#include "thimble/ops/clear/clear.h"

namespace thimble {
namespace {

struct ClearWords {
  uint16_t* to;
  __device__ void operator()(int64_t i) const { to[i] = 0; }
};

}  // namespace

// Zero has no bits set in any storage type, all of which have whole pairs of bytes.
void ClearCuda::Run(const KernelCall& call) {
  const auto bytes = call.outputs[0].bytes();
  LaunchElements(call.stream, static_cast<int64_t>(bytes.size() / sizeof(uint16_t)),
                 ClearWords{reinterpret_cast<uint16_t*>(bytes.data())});  // NOLINT: raw storage
}

}  // namespace thimble
