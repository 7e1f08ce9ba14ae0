// BatchTranslator: translates sentences with the decoding plans of a program, many at a time.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "thimble/exec/executor.h"
#include "thimble/train/planning/decoding.h"
#include "thimble/train/translate/sentence_search.h"

namespace thimble {

// Indices of words of a dictionary.
using WordIds = std::vector<int32_t>;

struct Translation {
  WordIds words;     // without </s>
  double score = 0;  // SentenceSearch::best_score
};

// The most words of the translation of a sentence of so many tokens: more than any sentence needs,
// for translations that would never end.
constexpr int64_t MaxTranslatedWords(int64_t source_tokens) { return 2 * source_tokens + 50; }

class BatchTranslator {
 public:
  // The arguments must outlive this. `options.hypotheses` must be those of the plans.
  BatchTranslator(Executor& executor, const DecodingPlans& plans, const SearchOptions& options);

  // Translates sentences, each with </s> at its end and at most plans.spec.longest tokens. No
  // translation depends on which other sentences there are.
  std::vector<Translation> Translate(std::span<const WordIds> sources);

 private:
  // The inputs and outputs of a pair of plans, and the host's copies of them.
  struct Ports {
    Ports(const Executor& executor, const DecodingPlans::Pair& pair, const DecodingPlans& plans);

    DecodingPlans::Pair pair;
    TensorView source, source_lengths_of_encoding, source_lengths;
    TensorView words, ancestors, step;
    TensorView top_words, log_probabilities, end_log_probability;
    std::vector<int32_t> source_ids, lengths, word_ids, ancestor_ids, top_word_ids;
    std::vector<float> log_probability_of, end_log_probability_of;
  };

  Ports& PortsFor(const DecodingPlans::Pair& pair);
  // Translates up to a batch of sentences, all with the plans of `ports`.
  void TranslateBatch(std::span<const WordIds> sources, std::span<const size_t> chosen,
                      Ports& ports, std::vector<Translation>& translations);
  void Encode(std::span<const WordIds> sources, std::span<const size_t> chosen, Ports& ports);
  // Runs one position of all sentences, and advances those that are not done.
  void Step(int32_t position, size_t sentences, Ports& ports);

  Executor& executor_;
  const DecodingPlans& plans_;
  std::vector<SentenceSearch> searches_;  // by sentence of a batch
  SearchOptions options_;
  std::map<int64_t, Ports> ports_;  // by padded length; made when first needed
};

}  // namespace thimble
