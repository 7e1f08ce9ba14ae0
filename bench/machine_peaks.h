// The peak rates of the machine, with which kernels are compared. Measured, not looked up: clock
// rates, SIMD units and memory differ between machines of the same name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/plan/cost.h"

namespace thimble {

struct MachinePeaks {
  double flops_per_second = 0;         // fp32: fused multiply-adds in registers; one counts as two
  double copied_bytes_per_second = 0;  // of memory; read and written bytes both count
  double tf32_flops_per_second = 0;    // of tensor cores; 0 if convolutions are computed in fp32

  // The shortest time in which an op can do this much work, in seconds.
  double LimitSeconds(std::string_view op, const NodeCost& cost) const;
};

// Independent chains of multiply-adds, `rounds` on each thread at once, with the active SIMD
// target. Returns the number of floating-point operations.
double RunFmaChains(ThreadPool& pool, int64_t rounds);

// Two arrays far larger than caches.
class CopyArrays {
 public:
  static Result<CopyArrays> Create(ThreadPool& pool);
  // Copies one to the other, each thread a part. Returns bytes read and written.
  double Copy(ThreadPool& pool);

 private:
  explicit CopyArrays(Arena arena) : arena_(std::move(arena)) {}
  Arena arena_;
};

// Rounds of RunFmaChains that last a few milliseconds.
inline constexpr int64_t kFmaRounds = 1'000'000;

// Measures the CPU: the best of many runs with all threads of the pool; takes about a second.
Result<MachinePeaks> MeasureMachinePeaks(ThreadPool& pool);
// Measures the GPU, for convolutions in TF32 or in fp32; see MeasureGpuPeaks for its requirements.
MachinePeaks MeasureMachinePeaksOfGpu(bool tf32);

}  // namespace thimble
