// ForwardCosts: the costs of forward stretches, each counted once.
#pragma once

#include <cstddef>
#include <vector>

#include "thimble/plan/recompute/stretches.h"

namespace thimble {

class ForwardCosts {
 public:
  // `stretches` must outlive this.
  ForwardCosts(const Stretches& stretches, size_t num_stages)
      : stretches_(stretches), num_stages_(num_stages), known_(num_stages * num_stages) {}

  // stretches.Forward(s, i, t). `count`: of the values in Entry(s, i, t).
  const StretchCost& Of(size_t s, size_t i, size_t t, size_t count);

 private:
  struct Known {
    size_t count = 0;
    StretchCost cost;
  };

  const Stretches& stretches_;
  size_t num_stages_;
  std::vector<std::vector<Known>> known_;  // by s and i
};

}  // namespace thimble
