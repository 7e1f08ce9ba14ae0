// What the errors of every reader must satisfy.
#pragma once

#include <string_view>

#include "thimble/base/check.h"
#include "thimble/base/result.h"
#include "thimble/base/utf8.h"

namespace thimble {

// Checks that the error is kBadInput and that, for any input, the message is one short line of text
// that begins with `place`.
inline void CheckError(const Error& error, std::string_view place) {
  constexpr size_t kMostBytes = 2000;
  THIMBLE_CHECK(error.kind == ErrorKind::kBadInput, "the error is not kBadInput: {}",
                error.message);
  THIMBLE_CHECK(error.message.starts_with(place), "the error does not begin with the place: {}",
                error.message);
  THIMBLE_CHECK(error.message.size() < kMostBytes, "the error has {} bytes", error.message.size());
  THIMBLE_CHECK(error.message.find('\n') == std::string::npos, "the error has more than one line");
  THIMBLE_CHECK(IsUtf8(error.message), "the error is not UTF-8");
}

}  // namespace thimble
