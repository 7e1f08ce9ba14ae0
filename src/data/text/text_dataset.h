// TextDataset: pairs of sentences, source and translation, read by index as indices of
// dictionaries. OpenTextData turns the argument of --data into the data sets of a run.
//
//   auto data = OpenTextData("bitext:/data/iwslt14.tokenized.de-en", {});
//   const PairLength length = data->train->LengthAt(17);
//   std::vector<int32_t> source(length.source), target(length.target);
//   data->train->Read(17, source, target);
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "thimble/base/result.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/data/text/subwords/merge_list.h"

namespace thimble {

// Tokens of the two sentences of a pair, with </s> at the end of each: at least 1.
struct PairLength {
  int32_t source = 0;
  int32_t target = 0;
  friend bool operator==(const PairLength&, const PairLength&) = default;
};

// What a data set does not show as it is in the files.
struct TextOmissions {
  // Pairs of a training set that were left out: with a sentence without words, or with one of too
  // many tokens. Other data sets leave out nothing.
  int64_t empty_pairs = 0;
  int64_t long_pairs = 0;
  // Sentences of a validation or test set that were cut at the largest length.
  int64_t cut_sentences = 0;
  friend bool operator==(const TextOmissions&, const TextOmissions&) = default;
};

class TextDataset {
 public:
  virtual ~TextDataset() = default;

  virtual const Dictionary& source_dictionary() const = 0;
  virtual const Dictionary& target_dictionary() const = 0;
  // Number of pairs; at least 1 and less than 2^31.
  virtual int64_t size() const = 0;
  // Requires 0 <= index < size(), like the functions below. Allocates nothing.
  virtual PairLength LengthAt(int64_t index) const = 0;

  // Writes both sentences as indices of the dictionaries, each with </s> at its end. The spans must
  // have the sizes of LengthAt(index). Thread-safe; allocates nothing on success.
  virtual Result<void> Read(int64_t index, std::span<int32_t> source,
                            std::span<int32_t> target) const = 0;

  // The sentences as text: words separated by single spaces, subwords joined; never cut, and with
  // all words, known or not. The target's is the reference for BLEU.
  virtual Result<std::string> SourceLine(int64_t index) const = 0;
  virtual Result<std::string> TargetLine(int64_t index) const = 0;

  virtual TextOmissions omissions() const { return {}; }
};

struct TextData {
  std::string name;             // "bitext", "numbers"
  std::string source_language;  // "de"
  std::string target_language;  // "en"
  std::unique_ptr<TextDataset> train;
  std::unique_ptr<TextDataset> validation;  // null if the folder has none
  std::unique_ptr<TextDataset> test;
  // With which words were split into subwords; null if the folder does not say.
  std::shared_ptr<const MergeList> merges;
  int32_t max_sentence_tokens = 0;  // as asked for
  // Identifies texts and dictionaries, independent of where their files are: "bitext de-en, 160239
  // training and 6750 test pairs, 8848 and 6632 words, crc64:…".
  std::string identity;
};

struct TextDataOptions {
  // Tokens of the longest sentence, </s> included: 2 to 65535. fairseq's models have 1024
  // positions. Must be at most the number of tokens in a batch.
  int32_t max_sentence_tokens = 1024;
  // Of dictionaries that are built because the folder has none.
  DictionaryOptions dictionary = {.multiple_of = 8};
};

// `spec` names a data set and its argument: "bitext:DIR", "bitext:DIR,de-en", "numbers",
// "numbers:5000,500" (TextDataForms lists all forms). BadInput for anything else and for damaged
// files.
Result<TextData> OpenTextData(std::string_view spec, const TextDataOptions& options);

// All forms of a specification, as help shows them.
std::string TextDataForms();

// Whether the specification begins with the name of a data set of text.
bool IsTextData(std::string_view spec);

}  // namespace thimble
