// Learning the merges of byte-pair encoding from the words of a text.
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/data/text/subwords/merge_list.h"
#include "thimble/data/text/subwords/word_counts.h"

namespace thimble {

// The first `most` merges. Each joins the two neighbouring symbols that occur together most often
// in the words as all merges before have left them; of equally frequent pairs the one with the
// largest first symbol, then the largest second one, by the bytes of their texts. Ends early when
// no pair occurs twice. The same as subword-nmt's learn_bpe for text without "</w>" and without
// words that end in "@@", which are left out (CanLearnFrom).
//
// Takes time for each merge in proportion to the words that it changes. BadInput if there is
// nothing to learn. Requires 1 <= most <= kMaxMerges and words of at most kMaxWordBytes.
Result<MergeList> LearnMerges(const WordCounts& words, int32_t most);

}  // namespace thimble
