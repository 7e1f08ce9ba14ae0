// Translates a data set and compares the translations with its references.
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/data/text/text_dataset.h"
#include "thimble/exec/executor.h"
#include "thimble/train/planning/decoding.h"
#include "thimble/train/translate/sentence_search.h"

namespace thimble {

struct TranslationScore {
  double bleu = 0;       // of words as they are in the texts (BleuKind::kTokenized)
  double sacrebleu = 0;  // BleuKind::kSacre13a
  int64_t exact = 0;     // sentences whose translation is their reference, word for word
  int64_t sentences = 0;
  double seconds = 0;
};

// Requires plans for the longest source sentence, and a search with as many hypotheses.
Result<TranslationScore> MeasureBleu(Executor& executor, const DecodingPlans& plans,
                                     const SearchOptions& options, const TextDataset& sentences);

}  // namespace thimble
