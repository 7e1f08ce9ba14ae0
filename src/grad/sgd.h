// Stochastic gradient descent (ops/sgd_update): keeps one array, the momentum, or none.
#pragma once

#include <memory>

#include "thimble/grad/optimizer.h"

namespace thimble {

inline constexpr const char* kMomentumPrefix = "momentum.";  // + name of the parameter

std::unique_ptr<const Optimizer> MakeSgd(const UpdateSpec& spec);

}  // namespace thimble
