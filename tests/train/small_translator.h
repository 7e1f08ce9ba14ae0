// How tests translate with the network of SmallSpec.
#pragma once

#include "tests/model/small_translator_spec.h"
#include "thimble/train/options/config.h"

namespace thimble {

// Tokens of the longest sentence.
inline constexpr int64_t kLongest = 30;

inline TrainConfig SmallConfig() {
  TrainConfig config;
  config.batch = 60;
  config.threads = 1;
  config.beam = 3;
  return config;
}

}  // namespace thimble
