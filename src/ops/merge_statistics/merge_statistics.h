// The GPU kernel of merge_statistics: the norms of consecutive steps in one launch, because each
// takes less time than a launch. On a CPU the reference is the only kernel.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct MergeStatisticsCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
