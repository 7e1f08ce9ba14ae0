// The version of the library that is running.
#pragma once

#include <string_view>

namespace thimble {

// "0.1.0", as CMakeLists.txt says.
std::string_view Version();

}  // namespace thimble
