// TechniqueRecord: what a technique did, by name and in words, as reports and plan.json have it.
#pragma once

#include <cstdint>
#include <string>

namespace thimble {

struct TechniqueRecord {
  std::string name;
  std::string exactness;  // "same-bits", "equal", "lossy"
  std::string what;       // in general
  std::string done;       // here
  int64_t saved_bytes = 0;
  int64_t added_flops = 0;
  friend bool operator==(const TechniqueRecord&, const TechniqueRecord&) = default;
};

}  // namespace thimble
