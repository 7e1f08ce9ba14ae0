// merge_statistics on a GPU: the norms of consecutive steps in one launch.
#pragma once

#include <span>

#include "thimble/graph/kernel.h"

namespace thimble {

struct MergeStatisticsCuda {
  static void Run(const KernelCall& call);
  static void RunGroup(std::span<const KernelCall> calls);
};

}  // namespace thimble
