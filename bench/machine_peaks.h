// What the machine can do at most: the roofs that kernels are compared with. Measured, not looked
// up: clock rates, SIMD units and memory differ between machines that share a name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/device/cpu/arena.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {

struct MachinePeaks {
  double flops_per_second = 0;         // fused multiply-adds in registers; one counts as two
  double copied_bytes_per_second = 0;  // of memory; read and written bytes both count

  // The shortest time in which this much work can be done, in seconds.
  double LimitSeconds(int64_t flops, int64_t bytes) const;
};

// Independent chains of multiply-adds, `rounds` on each thread at once, with the active SIMD
// target. Returns the number of floating-point operations.
double RunFmaChains(ThreadPool& pool, int64_t rounds);

// Two arrays far larger than caches.
class CopyArrays {
 public:
  static Result<CopyArrays> Create(ThreadPool& pool);
  // Copies one onto the other, each thread its part. Returns bytes read and written.
  double Copy(ThreadPool& pool);

 private:
  explicit CopyArrays(Arena arena) : arena_(std::move(arena)) {}
  Arena arena_;
};

// Rounds of RunFmaChains that last a few milliseconds.
inline constexpr int64_t kFmaRounds = 1'000'000;

// The best of many runs with all threads of the pool; takes about a second.
Result<MachinePeaks> MeasureMachinePeaks(ThreadPool& pool);

}  // namespace thimble
