// The memory that other frameworks need for the same step, measured by hand, for ratios in reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace thimble {

struct KnownPeak {
  std::string what;  // "PyTorch 2.11 on an H200, fp32"
  int64_t bytes = 0;
};

// The peak of a plain fp32 step of this network and batch, if it was measured.
std::optional<KnownPeak> FindKnownPeak(std::string_view model, int64_t batch);

}  // namespace thimble
