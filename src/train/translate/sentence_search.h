// SentenceSearch: the beam search for the translation of one sentence. It ranks as fairseq's
// generator does, but does not end while a hypothesis is rated better than all translations found:
// fairseq ends with as many translations as there are hypotheses, which a network that is sure of
// every word finds among the unlikely ones before the likely one is complete. It knows nothing
// about networks: at each position it gets the likeliest next words of every hypothesis, and says
// which hypotheses to continue with.
//
//   search.Start(30);
//   while (!search.done()) {
//     run the network on search.word(n) of each hypothesis n, with search.ancestors(n)
//     search.Advance(candidates);
//   }
//   search.best();  // without </s>
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "thimble/train/options/config.h"

namespace thimble {

struct SearchOptions {
  int64_t hypotheses = 4;  // the beam
  // Scores are divided by tokens to this power, so that long translations are not at a
  // disadvantage; 0: not at all.
  double length_penalty = 1;
  friend bool operator==(const SearchOptions&, const SearchOptions&) = default;
};

// Those of --beam and --length-penalty.
SearchOptions SearchOptionsOf(const TrainConfig& config);

// What the network says about the next word of N hypotheses: M candidates for each, the likeliest
// first.
struct Candidates {
  std::span<const int32_t> words;              // (N, M), M at least 2 * N
  std::span<const float> log_probabilities;    // (N, M)
  std::span<const float> end_log_probability;  // (N), of </s>
};

class SentenceSearch {
 public:
  // `ancestors`: how many earlier positions to remember for each hypothesis, at least 1.
  SentenceSearch(const SearchOptions& options, int64_t ancestors);

  // Begins a sentence, whose translation has at most so many words; at least 1.
  void Start(int64_t max_words);
  // Requires !done().
  void Advance(const Candidates& candidates);
  bool done() const { return done_; }

  // Of hypothesis n at the next position: the word before it, and the hypotheses it descends from,
  // at the position before that first.
  int32_t word(int64_t n) const { return active_[static_cast<size_t>(n)].word; }
  std::span<const int32_t> ancestors(int64_t n) const {
    return active_[static_cast<size_t>(n)].ancestors;
  }
  // The best translation, once done.
  std::span<const int32_t> best() const { return best_; }
  // Log probability, divided as options say.
  double best_score() const { return best_score_; }

 private:
  struct Hypothesis {
    double score = 0;  // log probability
    int32_t word = 0;
    std::vector<int32_t> words;  // so far
    std::vector<int32_t> ancestors;
  };
  // A hypothesis with one more word.
  struct Extension {
    double score;
    int32_t hypothesis;
    int32_t word;
  };

  // The best ones, best first.
  void RankExtensions(const Candidates& candidates);
  void Finish(const Hypothesis& hypothesis, double score);
  // The score of a translation of so many words, divided as options say.
  double Rate(double score, size_t words) const;
  void Extend(const Extension& extension, Hypothesis& to) const;

  SearchOptions options_;
  int64_t max_words_ = 0;
  int64_t position_ = 0;
  int64_t num_finished_ = 0;
  bool done_ = true;
  std::vector<Hypothesis> active_;
  std::vector<Hypothesis> next_;
  std::vector<Extension> extensions_;
  std::vector<int32_t> best_;
  double best_score_ = 0;
};

}  // namespace thimble
