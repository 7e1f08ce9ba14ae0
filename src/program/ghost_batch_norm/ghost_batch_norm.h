// Ghost batch norm: batch norms normalise nearly equal parts of the batch, each by its own
// statistics, as microbatching does, at the speed of the whole batch.
// docs/techniques/ghost-batch-norm.md
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

// The batch norms of a forward graph normalise groups of at most so many samples, one or more.
// Their statistics become those of groups: (groups, C) instead of (C).
Result<void> GroupBatchNorms(Graph& forward, const OpRegistry& ops, int64_t samples);

std::unique_ptr<const Technique> MakeGhostBatchNorm();

}  // namespace thimble
