// The technique `sparsity`: some weights are 0 and have no memory, neither for themselves nor for
// their gradient and momentum. Which ones changes while training (rewiring).
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

// The plan that rewires.
inline constexpr const char* kRewireName = "rewire";

std::unique_ptr<const Technique> MakeSparsity();      // --sparsity
std::unique_ptr<const Technique> MakeSparseMethod();  // --sparse-method
std::unique_ptr<const Technique> MakeSparseLayers();  // --sparse-layers
std::unique_ptr<const Technique> MakeRewireEvery();   // --rewire-every

}  // namespace thimble
