// What determines the last bits of a run's results: the CPU's SIMD target, or the device with its
// precision of products.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/train/options/config.h"

namespace thimble {

std::string RunTarget(const TrainConfig& config);

// Sets the SIMD target. A resumed run keeps that of its checkpoint if it can; otherwise returns a
// message for the user. (Plans do not depend on it: scratch is sized for the largest tile.)
Result<std::string> ChooseTarget(const TrainConfig& config);

}  // namespace thimble
