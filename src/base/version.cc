#include "thimble/base/version.h"

namespace thimble {

std::string_view Version() { return THIMBLE_VERSION; }
std::string_view GpuCode() { return THIMBLE_GPU_CODE; }

}  // namespace thimble
