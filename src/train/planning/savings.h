// Savings: the bytes that each technique saves for a configuration, alone and together with the
// others, found by planning with and without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"
#include "thimble/train/planning/plan_sizer.h"

namespace thimble {

struct TechniqueSaving {
  std::string name;                 // "in-place"; "--scratch 64KiB"
  std::string exactness;            // "same-bits", "equal", "lossy"
  std::string what;                 // description, one line
  int64_t arena_bytes = 0;          // with this technique alone
  int64_t step_flops = 0;           // with this technique alone
  int64_t without_arena_bytes = 0;  // with all other techniques
};

struct Savings {
  // Without any technique that saves bytes: no two values share memory.
  int64_t bare_arena_bytes = 0;
  // The techniques that are always applied unless left out, and the arena of the configuration.
  std::vector<TechniqueSaving> always;
  int64_t asked_arena_bytes = 0;
  int64_t asked_step_flops = 0;
  // Further options, and the arena with all of them. Each is added to the given options, or
  // replaces the same option.
  std::vector<TechniqueSaving> offered;
  int64_t together_arena_bytes = 0;
};

// Plans several times. Ignores the budget.
Result<Savings> FindSavings(const TrainConfig& config, const PlanSizer& sizer);

// The smallest arena with optimal recompute, and its arithmetic.
struct SmallestArena {
  int64_t microbatch = 0;  // 0: the whole batch
  std::string options;     // "--recompute optimal --microbatch 10"
  int64_t arena_bytes = 0;
  int64_t step_flops = 0;
};

// For the requested microbatch and for smaller ones. Takes longer than FindSavings.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const PlanSizer& sizer);

}  // namespace thimble
