// CHECK and DCHECK: the programmer was wrong. Never triggered by user input (that is Result's
// work).
#pragma once

#include <fmt/format.h>

#include <string>

namespace thimble {

// Prints the place and the message to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace thimble

// Always on. The message is a fmt format string with its arguments and may be left out.
#define THIMBLE_CHECK(condition, ...) \
  (static_cast<bool>(condition)       \
       ? static_cast<void>(0)         \
       : ::thimble::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)))

#ifdef NDEBUG
#define THIMBLE_DCHECK(condition, ...) static_cast<void>(0)
#else
#define THIMBLE_DCHECK(condition, ...) THIMBLE_CHECK(condition, __VA_ARGS__)
#endif
