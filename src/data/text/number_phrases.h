// The sentences of the data set "numbers": numbers, ordinals, dates, clock times, prices and
// percentages, in German and in English, drawn at random. Each German sentence has one translation.
#pragma once

#include <string_view>
#include <vector>

#include "thimble/base/philox.h"
#include "thimble/data/text/number_words.h"

namespace thimble {

struct NumberPhrase {
  TokenList german;
  TokenList english;
};

// The phrase that belongs to these counters; a pure function of them.
NumberPhrase DrawNumberPhrase(const RandomSource& source, uint32_t step, uint32_t sample,
                              uint32_t attempt);

// All tokens of all phrases.
std::vector<std::string_view> GermanPhraseTokens();
std::vector<std::string_view> EnglishPhraseTokens();

}  // namespace thimble
