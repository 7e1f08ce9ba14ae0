// What each reader promises of its errors.
#pragma once

#include <string_view>

#include "thimble/base/check.h"
#include "thimble/base/result.h"
#include "thimble/base/utf8.h"

namespace thimble {

// The input is to blame; the message is one line of text, begins with the place and is short enough
// to be read, whatever the input was.
inline void CheckError(const Error& error, std::string_view place) {
  constexpr size_t kMostBytes = 2000;
  THIMBLE_CHECK(error.kind == ErrorKind::kBadInput, "not bad input: {}", error.message);
  THIMBLE_CHECK(error.message.starts_with(place), "no place: {}", error.message);
  THIMBLE_CHECK(error.message.size() < kMostBytes, "{} bytes of error", error.message.size());
  THIMBLE_CHECK(error.message.find('\n') == std::string::npos, "more than one line");
  THIMBLE_CHECK(IsUtf8(error.message), "an error that is no text");
}

}  // namespace thimble
