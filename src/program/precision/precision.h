// The technique `precision`: numbers are stored in fewer than 32 bits; statistics of norms, softmax
// and the loss stay f32, and so does all arithmetic. The technique `store` does the same for single
// categories. `stochastic-rounding` can be switched off to show what it is good for, and so can
// `error-feedback`, which returns what rounding takes from weights.
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakePrecision();
std::unique_ptr<const Technique> MakeStore();
std::unique_ptr<const Technique> MakeStochasticRounding();
std::unique_ptr<const Technique> MakeErrorFeedback();

}  // namespace thimble
