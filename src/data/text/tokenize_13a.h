// The tokenizer of mteval-v13a, as sacreBLEU applies it by default before it counts words.
#pragma once

#include <string>
#include <string_view>

namespace thimble {

// Separates punctuation and symbols from words, but keeps periods and commas within numbers
// ("1,000.5") and apostrophes and hyphens within words. Resolves &quot;, &amp;, &lt; and &gt;, and
// drops "<skipped>". The tokens of the result are separated by one or more spaces. Works on bytes:
// what is not ASCII is part of words.
std::string Tokenize13a(std::string_view line);

}  // namespace thimble
