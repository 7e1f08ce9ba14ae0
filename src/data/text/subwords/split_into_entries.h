// Splits a word that a dictionary does not have into entries that it has: "vierundzwanzig" is
// "vier@@ und@@ zwanzig". For dictionaries of subwords whose merges are not known.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "thimble/data/text/dictionary.h"

namespace thimble {

// Longer words are not split: the time grows with the square of their bytes.
inline constexpr size_t kMostBytesToSplit = 128;

// Indices of the fewest entries that make up the word, all but the last with "@@" at their ends; of
// several such splits the one with the longest entry first. Empty if there is none.
std::vector<int32_t> SplitIntoEntries(const Dictionary& dictionary, std::string_view word);

}  // namespace thimble
