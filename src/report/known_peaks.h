// What others need for the same step, as measured by hand: for the ratios that reports print.
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

// Of a plain fp32 step of this network and batch, where somebody measured it.
std::optional<KnownPeak> FindKnownPeak(std::string_view model, int64_t batch);

}  // namespace thimble
