// A frontier made by hand, for tests of its outputs.
#pragma once

#include <vector>

#include "thimble/train/planning/frontier.h"

namespace thimble {

inline std::vector<FrontierPoint> MadeFrontier() {
  return {{400'000'000, 0.5, 1'000'000'000, 0, "same-bits", ""},
          {100'000'000, 0.75, 1'500'000'000, 0, "same-bits", "--recompute optimal:100000000"},
          {4'000'000, 1.25, 1'600'000'000, 0.3, "lossy", "--precision fp16 --sparsity 0.7"}};
}

}  // namespace thimble
