// RecomputeSpec: which values the user wants thrown away and rebuilt; `--recompute` as a value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

enum class RecomputeKind {
  kNone,     // keep everything that backward reads
  kCheap,    // rebuild norms and activations from what convolutions gave
  kBlocks,   // keep what passes between blocks; every `stride` of them
  kSqrt,     // the same with about as many blocks between two kept values as there are kept values
  kOptimal,  // the smallest arena, or the least work under a limit
};

struct RecomputeSpec {
  RecomputeKind kind = RecomputeKind::kNone;
  size_t stride = 1;       // of kBlocks
  size_t limit_bytes = 0;  // of kOptimal, for the arena; 0: as small as can be
  friend bool operator==(const RecomputeSpec&, const RecomputeSpec&) = default;
};

// "none", "cheap", "blocks", "blocks:2", "sqrt", "optimal", "optimal:64MB".
Result<RecomputeSpec> ParseRecompute(std::string_view text);
// What ParseRecompute takes back.
std::string ToString(const RecomputeSpec& spec);

}  // namespace thimble
