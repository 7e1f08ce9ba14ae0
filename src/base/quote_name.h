// Makes names and texts from files safe to show in messages.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// A name from a file, quoted, shortened and on one line. Everything except printable ASCII is
// escaped as in JSON.
std::string QuoteName(std::string_view name);

// The text on one line: control characters become \x0a and the like. The middle of texts above
// 1,500 bytes, longer than any message of Thimble, is cut out.
std::string OneLine(std::string_view text);

}  // namespace thimble
