// A profile as text: planned and measured memory, and where the time goes.
#pragma once

#include <string>

#include "thimble/report/text_style.h"
#include "thimble/train/profile/profile.h"

namespace thimble {

struct ProfileTables {
  bool layers = false;   // a row per layer, in the order of their first use in a step
  bool program = false;  // a row per step of the program
};

// The tables requested by `tables`, the categories at the peak, the ops by time and the totals; at
// the end every difference between plan and runs, one line each.
std::string ProfileText(const Profile& profile, const ProfileTables& tables = {},
                        const TextStyle& style = {});

}  // namespace thimble
