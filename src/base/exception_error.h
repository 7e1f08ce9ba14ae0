// Exceptions that reach the end of the program, in plain words.
#pragma once

#include <exception>

#include "thimble/base/result.h"

namespace thimble {

// The library throws nothing itself; its standard library does where the machine has no memory or
// starts no thread, or where a check for a size is missing.
Error ErrorOf(const std::exception& exception);

}  // namespace thimble
