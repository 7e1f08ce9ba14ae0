// Makes parallel text usable for translation: learns subwords from its training part and writes all
// of it, split, to another folder, with the merges and the dictionaries.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"

namespace thimble {

struct PreparationOptions {
  std::string from;       // a folder with train.de, train.en, test.de, …
  std::string languages;  // as in OpenBitext
  std::string to;         // a folder, created if missing
  int32_t merges = 10'000;
  bool overwrite = false;  // replace earlier files in `to` that differ
};

struct Preparation {
  std::string source_language;
  std::string target_language;
  int32_t merges = 0;  // fewer than asked for if no more pair of symbols occurs twice
};

// In `to` are then: the same files, each line split by SubwordSplitter and with single spaces;
// bpe.codes; dict.de.txt and dict.en.txt, each of the words of its own training text, padded to a
// multiple of 8 as fairseq does. A pure function of the files, `languages` and `merges`.
//
// BadInput, with file and line, for what OpenBitext would not accept, for text that is split
// already, if `from` and `to` are the same folder, and, without `overwrite`, if `to` has a file
// that is not the same; then nothing has changed there. The file without which OpenBitext does not
// accept the folder is written last, so a preparation that was interrupted is not taken for one.
// Needs memory for the distinct words of the training text.
Result<Preparation> PrepareBitext(const PreparationOptions& options);

}  // namespace thimble
