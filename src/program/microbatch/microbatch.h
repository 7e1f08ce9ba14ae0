// Microbatch: trains a batch in nearly equal parts, one after the other, and updates with the sum
// of their gradients. Only the values of one part are alive. docs/techniques/microbatch.md
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakeMicrobatch();

}  // namespace thimble
