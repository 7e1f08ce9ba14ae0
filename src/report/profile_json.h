// A profile as one JSON object.
#pragma once

#include <string>

#include "thimble/train/profile/profile.h"

namespace thimble {

// The whole profile: `categories`, `layers` and `steps` with planned and measured bytes by
// category, `ops` by time, every holding with both sizes, `differences` (empty if `agrees` is
// true). Sizes are in bytes, times in milliseconds.
std::string ToJson(const Profile& profile);

}  // namespace thimble
