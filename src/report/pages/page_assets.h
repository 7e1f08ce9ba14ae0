// The styles and the script embedded in every page.
#pragma once

#include <string_view>

namespace thimble {

// Layout, and the colours of text and boxes in light and dark.
std::string_view PageRules();

// Shows the titles of plots next to the pointer, on touch, and by arrow keys.
std::string_view PageScript();

}  // namespace thimble
