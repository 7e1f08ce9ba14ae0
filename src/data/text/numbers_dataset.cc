#include "thimble/data/text/numbers_dataset.h"

#include <utility>

#include "thimble/base/check.h"
#include "thimble/base/crc64.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

void WriteIds(const TokenList& tokens, const Dictionary& dictionary, std::span<int32_t> ids) {
  THIMBLE_CHECK(ids.size() == tokens.size() + 1, "space for {} tokens, expected {}", ids.size(),
                tokens.size() + 1);
  size_t count = 0;
  for (const std::string_view token : tokens.tokens()) ids[count++] = dictionary.Find(token);
  ids[count] = Dictionary::kEnd;
}

std::string LineOfTokens(const TokenList& tokens) {
  std::string line;
  LineJoiner joiner(line);
  for (const std::string_view token : tokens.tokens()) joiner.Append(token);
  return line;
}

}  // namespace

std::shared_ptr<const NumbersDictionaries> MakeNumbersDictionaries() {
  return std::make_shared<NumbersDictionaries>(
      NumbersDictionaries{Dictionary(GermanPhraseTokens()), Dictionary(EnglishPhraseTokens())});
}

NumbersSplit SplitOfPhrase(const TokenList& german) {
  Crc64 checksum;
  for (const std::string_view token : german.tokens()) {
    checksum.Append(token);
    checksum.Append(" ");
  }
  switch (checksum.value() % 10) {
    case 0:
      return NumbersSplit::kTest;
    case 1:
      return NumbersSplit::kValidation;
    default:
      return NumbersSplit::kTrain;
  }
}

NumbersDataset::NumbersDataset(std::shared_ptr<const NumbersDictionaries> dictionaries,
                               uint64_t seed, NumbersSplit split, int64_t size)
    : dictionaries_(std::move(dictionaries)),
      source_(seed, RandomPurpose::kNumbers),
      split_(split),
      size_(size) {
  THIMBLE_CHECK(size >= 1 && size <= INT32_MAX, "a numbers data set of {} pairs", size);
}

NumberPhrase NumbersDataset::PhraseAt(int64_t index) const {
  THIMBLE_CHECK(index >= 0 && index < size_, "pair {} of {}", index, size_);
  // Draws until a phrase belongs to this split: ten times on average for test and validation.
  for (uint32_t attempt = 0;; ++attempt) {
    const NumberPhrase phrase = DrawNumberPhrase(source_, static_cast<uint32_t>(split_),
                                                 static_cast<uint32_t>(index), attempt);
    if (SplitOfPhrase(phrase.german) == split_) return phrase;
  }
}

PairLength NumbersDataset::LengthAt(int64_t index) const {
  const NumberPhrase phrase = PhraseAt(index);
  return {static_cast<int32_t>(phrase.german.size() + 1),
          static_cast<int32_t>(phrase.english.size() + 1)};
}

Result<void> NumbersDataset::Read(int64_t index, std::span<int32_t> source,
                                  std::span<int32_t> target) const {
  const NumberPhrase phrase = PhraseAt(index);
  WriteIds(phrase.german, dictionaries_->source, source);
  WriteIds(phrase.english, dictionaries_->target, target);
  return {};
}

Result<std::string> NumbersDataset::SourceLine(int64_t index) const {
  return LineOfTokens(PhraseAt(index).german);
}

Result<std::string> NumbersDataset::TargetLine(int64_t index) const {
  return LineOfTokens(PhraseAt(index).english);
}

}  // namespace thimble
