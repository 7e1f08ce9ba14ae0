// Version and GPU code of this build of the library.
#pragma once

#include <string_view>

namespace thimble {

// "0.1.0", from CMakeLists.txt.
std::string_view Version();

// The GPU code it contains: "sm_80, sm_90a, compute_90" (the last for later GPUs), or "none".
std::string_view GpuCode();

}  // namespace thimble
