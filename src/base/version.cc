#include "thimble/base/version.h"

namespace thimble {

std::string_view Version() { return THIMBLE_VERSION; }

}  // namespace thimble
