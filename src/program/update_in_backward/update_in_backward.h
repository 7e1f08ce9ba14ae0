// The technique `update-in-backward`: each gradient is used as soon as backward has computed it, so
// that no array for all gradients is needed.
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakeUpdateInBackward();

}  // namespace thimble
