// How much more memory the process can get: free memory, and the limits of control groups and of
// the process. Mapping an arena does not reserve memory, so a process that takes too much is killed
// later, when it touches the pages; checking first turns that into an error with a reason.
//
//   THIMBLE_TRY(CheckMemory({.block_bytes = arena_bytes, .threads = 4}, ReadMemoryLimits()));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

// The host memory that a program is about to allocate.
struct MemoryNeed {
  int64_t block_bytes = 0;         // the arena, or the host's copy for a GPU
  int threads = 1;                 // to be started, including the current one
  int64_t plan_steps = 0;          // of all plans; each takes memory for its addresses
  std::string what = "the arena";  // what the block is for
  // How to reduce it, for the message; and whether a smaller --budget does.
  std::string advice = "try a smaller --batch or, in training, --microbatch or --recompute";
  bool budget_helps = true;

  // Estimated memory needed in addition to the block.
  int64_t BesideBytes() const;
  // The same for limits on address space, with stacks of this size.
  int64_t BesideAddresses(int64_t stack_bytes) const;
};

// A limit on how much more memory the process can get.
struct MemoryLimit {
  std::string name;              // "the control group /jobs/7"
  std::string detail;            // "limit 600 MB, 80 MB in use"
  int64_t free_bytes = 0;        // still available under this limit
  bool counts_mappings = false;  // limits address space, touched or not
};

struct MemoryLimits {
  std::vector<MemoryLimit> limits;
  int64_t stack_bytes = 0;  // of a new thread
};

// Reads /proc and /sys/fs/cgroup below `root`: free memory and swap, what the system may still
// promise where it promises no more than it has, the memory limits of the process's control group
// and of all above it (version 1 and 2, at the usual places), and the limits on address space and
// data (ulimit -v, -d). A limit that cannot be read is ignored. The page cache counts as free,
// because the system can drop it, except for half of the mapped files, such as code.
MemoryLimits ReadMemoryLimits(const std::string& root = "");

// kFailed if a limit allows less than is needed; the message names the tightest limit and `advice`.
Result<void> CheckMemory(const MemoryNeed& need, const MemoryLimits& limits);

// For a program that ran out of memory: describes the tightest limit.
std::string DescribeTightest(const MemoryLimits& limits);

}  // namespace thimble
