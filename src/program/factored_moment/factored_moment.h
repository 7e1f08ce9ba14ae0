// The technique `second-moment`: of Adam's second moment, only the means of rows and of columns are
// kept for matrices.
#pragma once

#include <memory>

#include "thimble/program/technique.h"

namespace thimble {

std::unique_ptr<const Technique> MakeSecondMoment();

}  // namespace thimble
