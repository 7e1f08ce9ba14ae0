// The peak rates of the GPU, like those of the CPU in machine_peaks.h. Measured on this GPU; builds
// without CUDA have a stub (bench/without_cuda).
#pragma once

namespace thimble {

struct GpuPeaks {
  double tf32_flops_per_second = 0;  // products of tensor cores by mma.sync, as our kernels use it
  double fp32_flops_per_second = 0;  // fused multiply-adds in registers; one counts as two
  double copied_bytes_per_second = 0;  // of memory; read and written bytes both count
};

// The best of several runs; takes about a quarter of a second and, temporarily, 2 GiB of GPU memory
// or as much as is free. Requires a device that CheckDevice accepts and that is idle. Aborts the
// program if there is no free memory.
GpuPeaks MeasureGpuPeaks();

}  // namespace thimble
