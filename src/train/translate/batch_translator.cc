#include "thimble/train/translate/batch_translator.h"

#include <algorithm>
#include <numeric>

#include "thimble/base/check.h"
#include "thimble/data/text/dictionary.h"
#include "thimble/model/sequence_layers.h"
#include "thimble/model/translator_decoding.h"

namespace thimble {
namespace {

template <class T>
std::span<const std::byte> BytesOf(const std::vector<T>& numbers) {
  return std::as_bytes(std::span(numbers));
}
template <class T>
std::span<std::byte> WritableBytesOf(std::vector<T>& numbers) {
  return std::as_writable_bytes(std::span(numbers));
}

template <class T>
std::vector<T> NumbersFor(const TensorView& view) {
  return std::vector<T>(static_cast<size_t>(view.shape.elements()));
}

}  // namespace

BatchTranslator::Ports::Ports(const Executor& executor, const DecodingPlans::Pair& the_pair,
                              const DecodingPlans& plans)
    : pair(the_pair),
      source(executor.View(pair.encode, kSourceInput)),
      source_lengths_of_encoding(executor.View(pair.encode, kSourceLengthsInput)),
      source_lengths(executor.View(pair.step, kSourceLengthsInput)),
      words(executor.View(pair.step, kHypothesisInput)),
      ancestors(executor.View(pair.step, kAncestorsInput)),
      step(executor.View(pair.step, kStepInput)),
      top_words(executor.View(pair.step, kTopWordsOutput)),
      log_probabilities(executor.View(pair.step, kLogProbabilitiesOutput)),
      end_log_probability(executor.View(pair.step, kEndLogProbabilityOutput)),
      source_ids(NumbersFor<int32_t>(source)),
      lengths(NumbersFor<int32_t>(source_lengths)),
      word_ids(NumbersFor<int32_t>(words)),
      ancestor_ids(NumbersFor<int32_t>(ancestors)),
      top_word_ids(NumbersFor<int32_t>(top_words)),
      log_probability_of(NumbersFor<float>(log_probabilities)),
      end_log_probability_of(NumbersFor<float>(end_log_probability)) {
  THIMBLE_CHECK(ancestors.shape[2] == plans.ancestors, "got {} ancestors, expected {}",
                ancestors.shape[2], plans.ancestors);
}

BatchTranslator::BatchTranslator(Executor& executor, const DecodingPlans& plans,
                                 const SearchOptions& options)
    : executor_(executor), plans_(plans), options_(options) {
  THIMBLE_CHECK(options.hypotheses == plans.spec.hypotheses,
                "planned for {} hypotheses, searching with {}", plans.spec.hypotheses,
                options.hypotheses);
}

BatchTranslator::Ports& BatchTranslator::PortsFor(const DecodingPlans::Pair& pair) {
  const int64_t length = pair.shape.source_length;
  return ports_.try_emplace(length, executor_, pair, plans_).first->second;
}

// Sentences of similar length are translated together, so that little is padding and few positions
// are computed for sentences that are done.
std::vector<Translation> BatchTranslator::Translate(std::span<const WordIds> sources) {
  std::vector<Translation> translations(sources.size());
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto length = [&](size_t i) { return static_cast<int64_t>(sources[i].size()); };
  std::ranges::stable_sort(order, {}, length);
  for (size_t begin = 0; begin < order.size();) {
    const DecodingPlans::Pair& pair = plans_.For(length(order[begin]));
    size_t end = begin;
    while (end < order.size() && end - begin < static_cast<size_t>(pair.shape.samples) &&
           length(order[end]) <= pair.shape.source_length) {
      ++end;
    }
    TranslateBatch(sources, std::span(order).subspan(begin, end - begin), PortsFor(pair),
                   translations);
    begin = end;
  }
  return translations;
}

void BatchTranslator::TranslateBatch(std::span<const WordIds> sources,
                                     std::span<const size_t> chosen, Ports& ports,
                                     std::vector<Translation>& translations) {
  Encode(sources, chosen, ports);
  while (searches_.size() < chosen.size()) searches_.emplace_back(options_, plans_.ancestors);
  for (size_t i = 0; i < chosen.size(); ++i) {
    searches_[i].Start(MaxTranslatedWords(static_cast<int64_t>(sources[chosen[i]].size())));
  }
  const auto searches = std::span(searches_).first(chosen.size());
  for (int32_t position = 0; !std::ranges::all_of(searches, &SentenceSearch::done); ++position) {
    Step(position, chosen.size(), ports);
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto best = searches_[i].best();
    translations[chosen[i]] = {{best.begin(), best.end()}, searches_[i].best_score()};
  }
}

// Rows without a sentence have no sources.
void BatchTranslator::Encode(std::span<const WordIds> sources, std::span<const size_t> chosen,
                             Ports& ports) {
  std::ranges::fill(ports.source_ids, Dictionary::kPad);
  std::ranges::fill(ports.lengths, 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    const WordIds& sentence = sources[chosen[i]];
    const auto row = i * static_cast<size_t>(ports.pair.shape.source_length);
    std::ranges::copy(sentence, ports.source_ids.begin() + static_cast<ptrdiff_t>(row));
    ports.lengths[i] = static_cast<int32_t>(sentence.size());
  }
  executor_.Prepare(ports.pair.encode);
  executor_.Write(ports.source, BytesOf(ports.source_ids));
  executor_.Write(ports.source_lengths_of_encoding, BytesOf(ports.lengths));
  executor_.Run(ports.pair.encode);
}

void BatchTranslator::Step(int32_t position, size_t sentences, Ports& ports) {
  const auto hypotheses = static_cast<size_t>(options_.hypotheses);
  const auto ancestors = static_cast<size_t>(plans_.ancestors);
  for (size_t i = 0; i < sentences * hypotheses; ++i) {
    const SentenceSearch& search = searches_[i / hypotheses];
    const auto n = static_cast<int64_t>(i % hypotheses);
    ports.word_ids[i] = search.word(n);
    std::ranges::copy(search.ancestors(n),
                      ports.ancestor_ids.begin() + static_cast<ptrdiff_t>(i * ancestors));
  }
  executor_.Prepare(ports.pair.step);
  executor_.Write(ports.source_lengths, BytesOf(ports.lengths));
  executor_.Write(ports.words, BytesOf(ports.word_ids));
  executor_.Write(ports.ancestors, BytesOf(ports.ancestor_ids));
  executor_.Write(ports.step, std::as_bytes(std::span(&position, 1)));
  executor_.Run(ports.pair.step);
  executor_.Read(ports.top_words, WritableBytesOf(ports.top_word_ids));
  executor_.Read(ports.log_probabilities, WritableBytesOf(ports.log_probability_of));
  executor_.ReadNow(ports.end_log_probability, WritableBytesOf(ports.end_log_probability_of));
  const size_t candidates = ports.top_word_ids.size() / ports.word_ids.size();
  for (size_t i = 0; i < sentences; ++i) {
    if (searches_[i].done()) continue;
    const size_t first = i * hypotheses;
    searches_[i].Advance(
        {std::span(ports.top_word_ids).subspan(first * candidates, hypotheses * candidates),
         std::span(ports.log_probability_of).subspan(first * candidates, hypotheses * candidates),
         std::span(ports.end_log_probability_of).subspan(first, hypotheses)});
  }
}

}  // namespace thimble
