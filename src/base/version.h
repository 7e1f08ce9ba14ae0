// What the library that is running was built as.
#pragma once

#include <string_view>

namespace thimble {

// "0.1.0", as CMakeLists.txt says.
std::string_view Version();

// The GPU code that it has: "sm_80, sm_90, compute_90" (the last for later GPUs), or "none".
std::string_view GpuCode();

}  // namespace thimble
