// Savings: what each technique saves for a configuration, on its own and together with the others,
// found by planning with and without it.
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
  std::string what;                 // one line for people
  int64_t arena_bytes = 0;          // with this one alone
  int64_t step_flops = 0;           // likewise
  int64_t without_arena_bytes = 0;  // with all others
};

struct Savings {
  // Without any pass that saves bytes: every value has bytes of its own.
  int64_t bare_arena_bytes = 0;
  // The passes that every plan has unless they are left out, and the arena as asked for.
  std::vector<TechniqueSaving> always;
  int64_t asked_arena_bytes = 0;
  int64_t asked_step_flops = 0;
  // What may be asked for on top of that, and the arena with all of them. Each is an option to add
  // to those that were given, or to take the place of the same one.
  std::vector<TechniqueSaving> offered;
  int64_t together_arena_bytes = 0;
};

// Plans a few times. The budget plays no part.
Result<Savings> FindSavings(const TrainConfig& config, const PlanSizer& sizer);

// The smallest arena that optimal recompute reaches, and its arithmetic.
struct SmallestArena {
  int64_t microbatch = 0;  // 0: the batch as a whole
  std::string options;     // that reach it: "--recompute optimal --microbatch 10"
  int64_t arena_bytes = 0;
  int64_t step_flops = 0;
};

// For the parts of the batch that were asked for, and for smaller ones. Takes longer than all of
// FindSavings.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const PlanSizer& sizer);

}  // namespace thimble
