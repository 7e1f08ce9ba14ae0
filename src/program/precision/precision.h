// Precision: numbers in 16 bits. Every value that only ports for numbers touch is stored in the
// requested type; statistics of norms, softmax and loss say that they need f32.
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakePrecision();

}  // namespace thimble
