// The data set "numbers": German number words, dates and clock times and their English
// translations, computed from (seed, split, index) when they are read. No file, no learned
// subwords, about a hundred entries in each dictionary: a task for small networks and for tests.
//
// A German sentence belongs to one split alone, decided by its checksum: a tenth of all sentences
// to the test split, a tenth to validation, the others to training.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "thimble/base/philox.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/data/text/number_phrases.h"
#include "thimble/data/text/text_dataset.h"

namespace thimble {

// Part of the random counter, so that the splits share no random numbers.
enum class NumbersSplit : uint32_t { kTrain = 0, kTest = 1, kValidation = 2 };

// The dictionaries of the task; every data set of it has the same ones.
struct NumbersDictionaries {
  Dictionary source;
  Dictionary target;
};
std::shared_ptr<const NumbersDictionaries> MakeNumbersDictionaries();

class NumbersDataset final : public TextDataset {
 public:
  // Requires 1 <= size < 2^31. A pair may occur at several indices: there are only a few thousand
  // clock times.
  NumbersDataset(std::shared_ptr<const NumbersDictionaries> dictionaries, uint64_t seed,
                 NumbersSplit split, int64_t size);

  const Dictionary& source_dictionary() const override { return dictionaries_->source; }
  const Dictionary& target_dictionary() const override { return dictionaries_->target; }
  int64_t size() const override { return size_; }
  PairLength LengthAt(int64_t index) const override;
  // Never fails.
  Result<void> Read(int64_t index, std::span<int32_t> source,
                    std::span<int32_t> target) const override;
  Result<std::string> SourceLine(int64_t index) const override;
  Result<std::string> TargetLine(int64_t index) const override;

 private:
  NumberPhrase PhraseAt(int64_t index) const;

  std::shared_ptr<const NumbersDictionaries> dictionaries_;
  RandomSource source_;
  NumbersSplit split_;
  int64_t size_;
};

// The split that a German sentence belongs to.
NumbersSplit SplitOfPhrase(const TokenList& german);

}  // namespace thimble
