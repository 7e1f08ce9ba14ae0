#include "thimble/device/cuda/check.h"

#include <cstdio>
#include <cstdlib>

namespace thimble {

void CheckCuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", file, line, call, cudaGetErrorString(code),
               cudaGetErrorName(code));
  std::abort();
}

bool IsHopperOrLater() {
  static const bool is = [] {
    int device = 0;
    int major = 0;
    THIMBLE_CUDA(cudaGetDevice(&device));
    THIMBLE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    return major >= 9;
  }();
  return is;
}

}  // namespace thimble
