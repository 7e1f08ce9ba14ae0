// TechniqueRecord: the name of a technique and what it did, for reports and plan.json.
#pragma once

#include <cstdint>
#include <string>

namespace thimble {

struct TechniqueRecord {
  std::string name;
  std::string exactness;  // "same-bits", "equal", "lossy"
  std::string what;       // what it does in general
  std::string done;       // what it did in this plan
  int64_t saved_bytes = 0;
  int64_t added_flops = 0;
  friend bool operator==(const TechniqueRecord&, const TechniqueRecord&) = default;
};

}  // namespace thimble
