// One run of a kernel on guarded memory, on the CPU or the GPU, for the op checks.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tests/support/cuda_memory.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/op_inputs.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/graph/kernel.h"

namespace thimble {

struct KernelRunOptions {
  int threads = 1;
  size_t scratch_bytes_per_thread = size_t{1} << 20;
  // (output, input) pairs that share memory.
  std::vector<std::pair<size_t, size_t>> in_place = {};
  CudaLaunch launch = CudaLaunch::kDirect;
};

// Threads are started once for all runs: there are thousands of runs, and most are short.
ThreadPool& PoolOf(int threads);

// The bytes of each output. Adds test failures if guards or inputs were overwritten. CUDA kernels
// require a device.
std::vector<std::vector<std::byte>> RunKernel(const PreparedCase& prepared, const Kernel& kernel,
                                              const std::vector<ReferenceTensor<double>>& inputs,
                                              const KernelRunOptions& options);

}  // namespace thimble
