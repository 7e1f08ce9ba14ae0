// One table of a profile as comma-separated values with a header; bytes and milliseconds.
#pragma once

#include <string>

#include "thimble/train/profile/profile.h"

namespace thimble {

// At the peak: category, planned and measured bytes; the gaps last.
std::string CategoriesCsv(const Profile& profile);
// A row per layer: planned and measured bytes of each category at the peak, time, arithmetic.
std::string LayersCsv(const Profile& profile);
// A row per step of the program: planned and measured bytes of each category, time, arithmetic.
std::string ProgramCsv(const Profile& profile);

}  // namespace thimble
