// Parallel text in files: train.de and train.en have a sentence in each line, split into tokens by
// spaces; the same for test and, if there, valid. Sentences are read from the files when they are
// needed; of each pair only its place and its lengths are in memory, 12 bytes.
//
// Left out of the training set, and counted: pairs with an empty sentence and pairs with a sentence
// that is too long. In validation and test sets every pair stays, because scores over fewer
// sentences could not be compared; sentences that are too long are cut, and counted.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {

// Opens and checks the files of `folder`. The dictionaries are dict.de.txt and dict.en.txt there,
// or, if both are missing, built from the training text.
//
// `languages` is the pair, source first: "de-en". If empty, the folder must have training text in
// exactly two languages, and the first in alphabetical order is the source.
//
// BadInput, with the place, if files are missing, not UTF-8, of unequal numbers of lines or without
// a single usable pair. Reading later fails with BadInput if a file has changed in the meantime.
Result<TextData> OpenBitext(const std::string& folder, const std::string& languages,
                            const TextDataOptions& options);

}  // namespace thimble
