// A profile for people: planned beside measured, and where the time goes.
#pragma once

#include <string>

#include "thimble/report/text_style.h"
#include "thimble/train/profile/profile.h"

namespace thimble {

struct ProfileTables {
  bool layers = false;   // a row per layer, in the order in which a step meets them
  bool program = false;  // a row per step of the program
};

// The categories at the peak, the ops by time and the totals, with further tables before these if
// asked for; at the end every difference between plan and runs, one line each.
std::string ProfileText(const Profile& profile, const ProfileTables& tables = {},
                        const TextStyle& style = {});

}  // namespace thimble
