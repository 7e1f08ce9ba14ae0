#include "thimble/plan/recompute/forward_costs.h"

#include <algorithm>

namespace thimble {

const StretchCost& ForwardCosts::Of(size_t s, size_t i, size_t t, size_t count) {
  std::vector<Known>& known = known_[s * num_stages_ + i];
  // In the first pass all nodes run; it is solved last.
  const bool is_first_pass = t + 1 == num_stages_;
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const Known& k) { return k.count == count; });
  if (!is_first_pass && found != known.end()) return found->cost;
  known.push_back({count, stretches_.Forward(s, i, t)});
  return known.back().cost;
}

}  // namespace thimble
