// Microbatch: a batch is trained in nearly equal parts, one after the other, and updated from the
// sum of their gradients. What is alive is that of one part. docs/techniques/microbatch.md
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakeMicrobatch();

}  // namespace thimble
