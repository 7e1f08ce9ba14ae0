// The command that repeats a run.
#pragma once

#include <string>

#include "thimble/train/config.h"

namespace thimble {

// "thimble train --model …" with every option that differs from its default, quoted for a shell.
// Without --resume: it would go on with a run that has ended.
std::string CommandOf(const TrainConfig& config);

}  // namespace thimble
