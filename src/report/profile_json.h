// A profile for programs: one JSON object.
#pragma once

#include <string>

#include "thimble/train/profile/profile.h"

namespace thimble {

// All of it: `categories`, `layers` and `steps` with planned and measured bytes by category, `ops`
// by time, every holding with both sizes, `differences` (empty where `agrees` is true). Bytes are
// bytes, times are milliseconds.
std::string ToJson(const Profile& profile);

}  // namespace thimble
