// RecomputeSpec: the option `--recompute` as a value.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

enum class RecomputeKind {
  kNone,     // keep everything that backward reads
  kCheap,    // rebuild norms and activations from the outputs of convolutions
  kBlocks,   // keep the values between blocks, or every `stride`-th of them
  kSqrt,     // kBlocks with stride = square root of the number of blocks
  kOptimal,  // the smallest arena, or the least work within a limit
};

struct RecomputeSpec {
  RecomputeKind kind = RecomputeKind::kNone;
  size_t stride = 1;       // of kBlocks
  size_t limit_bytes = 0;  // of kOptimal, for the arena; 0: as small as possible
  friend bool operator==(const RecomputeSpec&, const RecomputeSpec&) = default;
};

// "none", "cheap", "blocks", "blocks:2", "sqrt", "optimal", "optimal:64MB".
Result<RecomputeSpec> ParseRecompute(std::string_view text);
// A text that ParseRecompute accepts.
std::string ToString(const RecomputeSpec& spec);

}  // namespace thimble
