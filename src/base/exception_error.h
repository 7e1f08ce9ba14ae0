// Exceptions that reach the end of the program, in plain words.
#pragma once

#include <exception>

#include "thimble/base/result.h"

namespace thimble {

// The library throws nothing itself; its standard library does where the operating system refuses
// something or a check for a size is missing. std::bad_alloc is the caller's: it must not allocate.
Error ErrorOf(const std::exception& exception);

}  // namespace thimble
