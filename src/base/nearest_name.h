// "did you mean …?": finds the known name closest to a misspelt one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Number of letters to insert, delete, replace or swap with their neighbour to turn one word into
// the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The first of the nearest names. Allows one edit per three letters of the word, but at least one;
// empty if no name is that near. Ignores case.
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

// "; did you mean PREFIXnearest?", for the end of a message; empty if no name is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names,
                       std::string_view prefix = "");

}  // namespace thimble
