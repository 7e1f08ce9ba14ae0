// CHECK and DCHECK: for programming errors. Never triggered by user input; that is what Result is
// for.
#pragma once

#include <fmt/format.h>

#include <string>

namespace thimble {

// Prints file, line and message to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace thimble

// Always on. The message is an fmt format string with its arguments; optional.
#define THIMBLE_CHECK(condition, ...) \
  (static_cast<bool>(condition)       \
       ? static_cast<void>(0)         \
       : ::thimble::CheckFailed(__FILE__, __LINE__, #condition, ::fmt::format("" __VA_ARGS__)))

#ifdef NDEBUG
#define THIMBLE_DCHECK(condition, ...) static_cast<void>(0)
#else
#define THIMBLE_DCHECK(condition, ...) THIMBLE_CHECK(condition, __VA_ARGS__)
#endif
