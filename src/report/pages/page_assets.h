// What every page carries: its styles and its script.
#pragma once

#include <string_view>

namespace thimble {

// Layout, and the colours of text and boxes in light and dark.
std::string_view PageRules();

// Shows the titles of plots beside the pointer, under a finger, and by arrow keys.
std::string_view PageScript();

}  // namespace thimble
