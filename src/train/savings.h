// Savings: what each technique saves for a network and batch, on its own and together with the
// others, found by planning with and without it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/train/config.h"
#include "thimble/train/training_program.h"

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
  // Without any technique: every value has bytes of its own.
  int64_t bare_arena_bytes = 0;
  // What every plan has, and the arena with all of them: the plain plan.
  std::vector<TechniqueSaving> always;
  int64_t plain_arena_bytes = 0;
  int64_t plain_step_flops = 0;
  // What may be asked for, on top of the plain plan, and the arena with all of them.
  std::vector<TechniqueSaving> offered;
  int64_t together_arena_bytes = 0;
};

// Plans full batches a few times. Budget, and techniques that `config` asks for, play no part.
Result<Savings> FindSavings(const TrainConfig& config, const ImageClassifier& model,
                            const OpRegistry& ops);

// The smallest arena that optimal recompute reaches, and its arithmetic.
struct SmallestArena {
  int64_t microbatch = 0;  // 0: the batch as a whole
  int64_t arena_bytes = 0;
  int64_t step_flops = 0;
};

// For the batch as a whole and for parts of it. Takes longer than all of FindSavings.
Result<std::vector<SmallestArena>> FindSmallestArenas(const TrainConfig& config,
                                                      const ImageClassifier& model,
                                                      const OpRegistry& ops);

// The largest batch up to config.batch whose arena, planned as configured, is within the budget; 0
// where not even a batch of one is. Requires a budget.
Result<int64_t> LargestBatchWithin(const TrainConfig& config, const ImageClassifier& model,
                                   const OpRegistry& ops);

}  // namespace thimble
