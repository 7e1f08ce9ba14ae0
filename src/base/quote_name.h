// Names and texts from files in messages.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// A name from a file in quotes, on one line and shortened, fit for a message. Whatever is no
// printable ASCII is escaped as in JSON.
std::string QuoteName(std::string_view name);

// The same text without line breaks: control characters become \x0a and the like. Longer ones than
// any message of ours (1,500 bytes) lose their middle.
std::string OneLine(std::string_view text);

}  // namespace thimble
