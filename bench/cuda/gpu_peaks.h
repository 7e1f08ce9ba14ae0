// What the GPU can do at most, as machine_peaks.h has it for the CPU. Measured on the GPU that is
// there; builds without CUDA have a stand-in (bench/without_cuda).
#pragma once

namespace thimble {

struct GpuPeaks {
  double tf32_flops_per_second = 0;  // products of tensor cores by mma.sync, as our kernels use it
  double fp32_flops_per_second = 0;  // fused multiply-adds in registers; one counts as two
  double copied_bytes_per_second = 0;  // of memory; read and written bytes both count
};

// The best of several runs; takes about a quarter of a second, and 2 GiB of the GPU's memory or
// what is left of it, which are given back. Requires a device that CheckDevice accepts, and nothing
// under way on it. Stops the program where there is no memory left to copy.
GpuPeaks MeasureGpuPeaks();

}  // namespace thimble
