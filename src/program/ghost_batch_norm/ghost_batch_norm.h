// Ghost batch norm: batch norms normalise nearly equal parts of the batch, each with its own
// statistics, as microbatching does, but at the speed of the whole batch.
// docs/techniques/ghost-batch-norm.md
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

// Makes the batch norms of a forward graph normalise groups of at most `samples` >= 1 samples.
// Their statistics get the shape (groups, C) instead of (C).
Result<void> GroupBatchNorms(Graph& forward, const OpRegistry& ops, int64_t samples);

std::unique_ptr<const Technique> MakeGhostBatchNorm();

}  // namespace thimble
