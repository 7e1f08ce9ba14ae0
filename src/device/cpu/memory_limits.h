// How much more memory this machine will give the process: what is free, and the limits of control
// groups and of the process. An arena is mapped without being reserved, so whoever takes more is
// killed later, when it is touched; asking before turns that into an error with a reason.
//
//   THIMBLE_TRY(CheckMemory({.block_bytes = arena_bytes, .threads = 4}, ReadMemoryLimits()));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

// What a program is about to take of the host's memory.
struct MemoryNeed {
  int64_t block_bytes = 0;         // the arena, or what the host keeps for a GPU
  int threads = 1;                 // to be started, the present one included
  int64_t plan_steps = 0;          // of all plans: their addresses, records and pictures
  std::string what = "the arena";  // what the block is for
  // What makes it smaller.
  std::string advice = "a smaller --batch helps, in training also --microbatch and --recompute";

  // About as much is needed beside the block.
  int64_t BesideBytes() const;
  // The same where addresses are counted, touched or not, with stacks of this size.
  int64_t BesideAddresses(int64_t stack_bytes) const;
};

// Something that ends how much more memory the process gets.
struct MemoryLimit {
  std::string name;              // "the control group /jobs/7"
  std::string detail;            // "limit 600 MB, 80 MB in use"
  int64_t free_bytes = 0;        // what it leaves
  bool counts_mappings = false;  // addresses, whether touched or not
};

struct MemoryLimits {
  std::vector<MemoryLimit> limits;
  int64_t stack_bytes = 0;  // of a new thread
};

// Reads /proc and /sys/fs/cgroup below `root`: free memory and swap, the memory limits of the
// process's control group and of all above it (version 1 and 2, at the usual places), and the
// limits on address space and data (ulimit -v, -d). What cannot be read is no limit. Caches of
// files count as free: the system gives them up.
MemoryLimits ReadMemoryLimits(const std::string& root = "");

// kFailed where a limit leaves less than is needed; names the tightest one and what helps.
Result<void> CheckMemory(const MemoryNeed& need, const MemoryLimits& limits);

// For a program that ran out of memory: which limit leaves least.
std::string DescribeTightest(const MemoryLimits& limits);

}  // namespace thimble
