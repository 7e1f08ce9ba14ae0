// "did you mean …?": the known name that a misspelt one most likely stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace thimble {

// Letters to insert, delete, replace or swap with their neighbour to get from one word to the
// other.
size_t EditDistance(std::string_view a, std::string_view b);

// The first of the nearest names; empty where none is near: at most one edit for each three letters
// of the word, and at least one. Lower and upper case are the same here.
std::string NearestName(std::string_view word, const std::vector<std::string>& names);

// "; did you mean PREFIXnearest?", for the end of a message; empty where no name is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names,
                       std::string_view prefix = "");

}  // namespace thimble
