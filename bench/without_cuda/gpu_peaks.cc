#include "bench/cuda/gpu_peaks.h"

#include "thimble/base/check.h"

namespace thimble {

// Never called: no plan for a GPU can be executed.
GpuPeaks MeasureGpuPeaks() {
  THIMBLE_CHECK(false, "built without CUDA");
  return {};
}

}  // namespace thimble
