#include "thimble/train/translate/sentence_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "thimble/base/check.h"
#include "thimble/data/text/dictionary.h"

namespace thimble {
namespace {

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// A network that diverged gives NaN: then no word is likelier than another.
double ScoreWith(double score, float log_probability) {
  const double sum = score + log_probability;
  if (std::isnan(sum)) return kWorst;
  return sum;
}

}  // namespace

SearchOptions SearchOptionsOf(const TrainConfig& config) {
  return {.hypotheses = config.beam, .length_penalty = config.length_penalty};
}

SentenceSearch::SentenceSearch(const SearchOptions& options, int64_t ancestors)
    : options_(options),
      active_(static_cast<size_t>(options.hypotheses)),
      next_(static_cast<size_t>(options.hypotheses)) {
  THIMBLE_CHECK(options.hypotheses >= 1 && ancestors >= 1, "a search needs a hypothesis");
  for (auto* hypotheses : {&active_, &next_}) {
    for (Hypothesis& hypothesis : *hypotheses) {
      hypothesis.ancestors.resize(static_cast<size_t>(ancestors));
    }
  }
}

void SentenceSearch::Start(int64_t max_words) {
  THIMBLE_CHECK(max_words >= 1, "a translation of at most {} words", max_words);
  max_words_ = max_words;
  position_ = num_finished_ = 0;
  done_ = false;
  best_.clear();
  best_score_ = kWorst;
  for (size_t n = 0; n < active_.size(); ++n) {
    active_[n].score = 0;
    active_[n].word = Dictionary::kEnd;
    active_[n].words.clear();
    std::ranges::fill(active_[n].ancestors, static_cast<int32_t>(n));
  }
}

double SentenceSearch::Rate(double score, size_t words) const {
  const auto tokens = static_cast<double>(words + 1);  // </s> too
  return score / std::pow(tokens, options_.length_penalty);
}

void SentenceSearch::Finish(const Hypothesis& hypothesis, double score) {
  const double rated = Rate(score, hypothesis.words.size());
  if (num_finished_++ == 0 || rated > best_score_) {
    best_score_ = rated;
    best_ = hypothesis.words;
  }
}

// All hypotheses of the first position are the same, so only one of them counts there. Equal scores
// keep the order of hypotheses and candidates, so that nothing depends on how sorting works.
void SentenceSearch::RankExtensions(const Candidates& candidates) {
  const size_t hypotheses = position_ == 0 ? 1 : active_.size();
  const size_t count = candidates.words.size() / active_.size();
  extensions_.clear();
  for (size_t n = 0; n < hypotheses; ++n) {
    for (size_t i = n * count; i < (n + 1) * count; ++i) {
      // An empty translation is none.
      if (position_ == 0 && candidates.words[i] == Dictionary::kEnd) continue;
      extensions_.push_back({ScoreWith(active_[n].score, candidates.log_probabilities[i]),
                             static_cast<int32_t>(n), candidates.words[i]});
    }
  }
  std::ranges::stable_sort(extensions_, std::ranges::greater(), &Extension::score);
}

void SentenceSearch::Extend(const Extension& extension, Hypothesis& to) const {
  const Hypothesis& from = active_[static_cast<size_t>(extension.hypothesis)];
  to.score = extension.score;
  to.word = extension.word;
  to.words = from.words;
  to.words.push_back(extension.word);
  to.ancestors.front() = extension.hypothesis;
  std::copy(from.ancestors.begin(), from.ancestors.end() - 1, to.ancestors.begin() + 1);
}

void SentenceSearch::Advance(const Candidates& candidates) {
  THIMBLE_DCHECK(!done_, "the search has ended");
  if (position_ == max_words_) {
    for (size_t n = 0; n < active_.size(); ++n) {
      Finish(active_[n], ScoreWith(active_[n].score, candidates.end_log_probability[n]));
    }
    done_ = true;
    return;
  }
  RankExtensions(candidates);
  size_t kept = 0;
  // A translation ends only if </s> is among the best of as many extensions as there are
  // hypotheses: further down, others are worth more.
  for (size_t rank = 0; rank < extensions_.size() && kept < active_.size(); ++rank) {
    const Extension& extension = extensions_[rank];
    if (extension.word != Dictionary::kEnd) {
      Extend(extension, next_[kept++]);
    } else if (rank < active_.size()) {
      Finish(active_[static_cast<size_t>(extension.hypothesis)], extension.score);
    }
  }
  THIMBLE_CHECK(kept == active_.size(), "{} of {} hypotheses have a next word", kept,
                active_.size());
  std::swap(active_, next_);
  ++position_;
  // The first hypothesis is the best one. It is rated as if it ended now, for certain. A single one
  // is greedy: it has ended.
  const bool may_be_better =
      options_.hypotheses > 1 && Rate(active_[0].score, active_[0].words.size()) > best_score_;
  done_ = num_finished_ >= options_.hypotheses && !may_be_better;
}

}  // namespace thimble
