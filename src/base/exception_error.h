// Turns exceptions that reach main into error messages.
#pragma once

#include <exception>

#include "thimble/base/result.h"

namespace thimble {

// Thimble itself throws nothing; the standard library does if the operating system refuses a
// request or a size check is missing. The caller handles std::bad_alloc, because this function
// allocates.
Error ErrorOf(const std::exception& exception);

}  // namespace thimble
