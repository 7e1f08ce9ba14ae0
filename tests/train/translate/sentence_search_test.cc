#include "thimble/train/translate/sentence_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

#include "thimble/base/philox.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using Words = std::vector<int32_t>;

constexpr int32_t kEnd = 2;
constexpr int64_t kAncestors = 3;

// What a made-up network says: log probabilities of the next word after these. Words that are not
// named get little.
using Language = std::function<std::map<int32_t, double>(const Words&)>;

// A language of words 2 to 9 with random probabilities, the same for the same beginning.
Language RandomLanguage(uint64_t seed) {
  return [seed](const Words& words) {
    uint64_t place = 1;
    for (const int32_t word : words) place = place * 11 + static_cast<uint64_t>(word);
    const RandomSource source(seed, RandomPurpose::kInit);
    std::map<int32_t, double> next;
    double sum = 0;
    for (int32_t word = 2; word < 10; ++word) {
      next[word] = std::exp(4 * UniformFloat(source.Words(0, 0, place * 16 + word)[0]));
      sum += next[word];
    }
    for (auto& [word, probability] : next) probability = std::log(probability / sum);
    return next;
  };
}

// Runs a search in a language, with words and ancestors as a network would see them.
class Searcher {
 public:
  Searcher(Language language, const SearchOptions& options)
      : language_(std::move(language)),
        search_(options, kAncestors),
        hypotheses_(options.hypotheses) {}

  Words Run(int64_t max_words) {
    search_.Start(max_words);
    std::vector<Words> before(hypotheses_);  // of each hypothesis, the words so far
    for (int64_t position = 0; !search_.done(); ++position) {
      std::vector<Words> now(hypotheses_);
      for (size_t n = 0; n < hypotheses_; ++n) {
        const auto from = static_cast<size_t>(search_.ancestors(static_cast<int64_t>(n))[0]);
        now[n] = before[from];
        if (position > 0) now[n].push_back(search_.word(static_cast<int64_t>(n)));
      }
      Advance(now);
      before = now;
      ++positions_;
    }
    return {search_.best().begin(), search_.best().end()};
  }

  const SentenceSearch& search() const { return search_; }
  int64_t positions() const { return positions_; }

 private:
  void Advance(const std::vector<Words>& hypotheses) {
    const size_t count = 2 * hypotheses_;
    Words words;
    std::vector<float> log_probabilities, end;
    for (const Words& hypothesis : hypotheses) {
      auto next = language_(hypothesis);
      next.try_emplace(kEnd, -1000);
      for (int32_t word = 3; word < 3 + static_cast<int32_t>(count); ++word) {
        next.try_emplace(word, -50.0 - word);
      }
      std::vector<std::pair<int32_t, double>> sorted(next.begin(), next.end());
      std::ranges::stable_sort(sorted, std::greater(), &std::pair<int32_t, double>::second);
      for (size_t i = 0; i < count; ++i) {
        words.push_back(sorted[i].first);
        log_probabilities.push_back(static_cast<float>(sorted[i].second));
      }
      end.push_back(static_cast<float>(next.at(kEnd)));
    }
    search_.Advance({words, log_probabilities, end});
  }

  Language language_;
  SentenceSearch search_;
  size_t hypotheses_;
  int64_t positions_ = 0;
};

// Greedily 5, then an end; but 6 7 is likelier.
std::map<int32_t, double> Tempting(const Words& words) {
  if (words.empty()) return {{5, -0.5}, {6, -0.9}};
  if (words == Words{5}) return {{kEnd, -2.0}, {8, -2.5}};
  if (words == Words{6}) return {{7, -0.1}, {kEnd, -3.0}};
  if (words == Words{6, 7}) return {{kEnd, -0.1}, {8, -3.0}};
  return {{kEnd, -0.1}};
}

TEST(SentenceSearch, OneHypothesisIsGreedy) {
  EXPECT_THAT(Searcher(Tempting, {.hypotheses = 1}).Run(20), ElementsAre(5));
}

TEST(SentenceSearch, MoreHypothesesFindWhatGreedyMisses) {
  Searcher searcher(Tempting, {.hypotheses = 2});
  EXPECT_THAT(searcher.Run(20), ElementsAre(6, 7));
  // -0.9 - 0.1 - 0.1, by three tokens.
  EXPECT_NEAR(searcher.search().best_score(), -1.1 / 3, 1e-6);
}

// A network that is nearly sure of every word: after each word, ending is one of the next best.
TEST(SentenceSearch, UnlikelyTranslationsDoNotEndTheSearch) {
  constexpr size_t kWords = 8;
  const Language sure = [](const Words& words) {
    std::map<int32_t, double> next;
    for (int32_t word = 2; word < 10; ++word) next[word] = -5;
    next[words.size() < kWords ? 3 : kEnd] = -0.05;
    return next;
  };
  for (const double length_penalty : {0.0, 1.0}) {
    Searcher searcher(sure, {.hypotheses = 4, .length_penalty = length_penalty});
    EXPECT_EQ(searcher.Run(20), Words(kWords, 3)) << length_penalty;
    EXPECT_EQ(searcher.positions(), static_cast<int64_t>(kWords) + 1) << length_penalty;
  }
}

TEST(SentenceSearch, WithoutLengthPenaltyShortOnesWin) {
  const auto language = [](const Words& words) -> std::map<int32_t, double> {
    if (words.empty()) return {{5, -0.1}, {6, -3}};
    if (words.size() == 1) return {{kEnd, -1.0}, {6, -0.6}};
    if (words.size() < 4) return {{6, -0.3}, {kEnd, -5}};
    return {{kEnd, -0.01}};
  };
  EXPECT_EQ(Searcher(language, {.hypotheses = 2, .length_penalty = 0}).Run(20).size(), 1U);
  EXPECT_EQ(Searcher(language, {.hypotheses = 2, .length_penalty = 1}).Run(20).size(), 4U);
}

TEST(SentenceSearch, NoTranslationIsEmpty) {
  const auto language = [](const Words& words) -> std::map<int32_t, double> {
    if (words.empty()) return {{kEnd, -0.01}, {5, -5}};
    return {{kEnd, -0.01}};
  };
  for (const int64_t hypotheses : {1, 3}) {
    EXPECT_THAT(Searcher(language, {.hypotheses = hypotheses}).Run(20), ElementsAre(5));
  }
}

TEST(SentenceSearch, ATranslationThatDoesNotEndIsEnded) {
  const auto endless = [](const Words&) -> std::map<int32_t, double> { return {{5, -0.01}}; };
  for (const int64_t max_words : {1, 7}) {
    Searcher searcher(endless, {.hypotheses = 2});
    EXPECT_EQ(std::ssize(searcher.Run(max_words)), max_words);
    EXPECT_EQ(searcher.positions(), max_words + 1);
  }
}

TEST(SentenceSearch, NumbersThatAreNoneEndToo) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto broken = [&](const Words&) -> std::map<int32_t, double> {
    return {{2, nan}, {3, nan}, {4, nan}, {5, nan}};
  };
  EXPECT_LE(Searcher(broken, {.hypotheses = 2}).Run(5).size(), 5U);
}

TEST(SentenceSearch, CanBeginAgain) {
  Searcher searcher(Tempting, {.hypotheses = 2});
  const Words first = searcher.Run(20);
  EXPECT_EQ(searcher.Run(20), first);
}

// With as many hypotheses as there are beginnings of a translation, nothing is missed: the search
// finds the best of all translations that it may consider.
TEST(SentenceSearch, WithManyHypothesesTheBestIsFound) {
  constexpr int64_t kMaxWords = 2;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Language language = RandomLanguage(seed);
    double best = -std::numeric_limits<double>::infinity();
    Words best_words;
    const std::function<void(const Words&, double)> visit = [&](const Words& words, double score) {
      const auto next = language(words);
      if (!words.empty()) {
        const double rated = (score + next.at(kEnd)) / static_cast<double>(words.size() + 1);
        if (rated > best) {
          best = rated;
          best_words = words;
        }
      }
      if (words.size() == kMaxWords) return;
      for (const auto& [word, log_probability] : next) {
        if (word == kEnd) continue;
        Words longer = words;
        longer.push_back(word);
        visit(longer, score + log_probability);
      }
    };
    visit({}, 0);
    // 7 words, then 49 pairs of words: more hypotheses than that continue.
    Searcher searcher(language, {.hypotheses = 64});
    EXPECT_THAT(searcher.Run(kMaxWords), ElementsAreArray(best_words)) << seed;
    EXPECT_NEAR(searcher.search().best_score(), best, 1e-5);
  }
}

// The ancestors lead back through the words of each hypothesis.
TEST(SentenceSearch, AncestorsLeadBack) {
  constexpr int64_t kHypotheses = 4;
  const Language language = RandomLanguage(7);
  SentenceSearch search({.hypotheses = kHypotheses}, kAncestors);
  search.Start(12);
  std::vector<std::vector<int32_t>> words_at;     // by position and hypothesis
  std::vector<std::vector<Words>> beginnings_at;  // likewise
  for (int64_t position = 0; !search.done(); ++position) {
    words_at.emplace_back();
    beginnings_at.emplace_back();
    Words candidates;
    std::vector<float> log_probabilities, end;
    for (int64_t n = 0; n < kHypotheses; ++n) {
      Words beginning;
      if (position > 0) {
        beginning = beginnings_at[position - 1][search.ancestors(n)[0]];
        beginning.push_back(search.word(n));
      }
      for (int64_t d = 1; d < std::min(position, kAncestors); ++d) {
        const int32_t ancestor = search.ancestors(n)[d];
        const Words& earlier = beginnings_at[position - 1 - d][ancestor];
        EXPECT_TRUE(std::equal(earlier.begin(), earlier.end(), beginning.begin()));
        EXPECT_EQ(std::ssize(earlier), position - 1 - d);
      }
      beginnings_at.back().push_back(beginning);
      const auto next = language(beginning);
      std::vector<std::pair<int32_t, double>> sorted(next.begin(), next.end());
      std::ranges::stable_sort(sorted, std::greater(), &std::pair<int32_t, double>::second);
      for (const auto& [word, log_probability] : sorted) {
        candidates.push_back(word);
        log_probabilities.push_back(static_cast<float>(log_probability));
      }
      end.push_back(static_cast<float>(next.at(kEnd)));
    }
    search.Advance({candidates, log_probabilities, end});
  }
  EXPECT_GT(beginnings_at.size(), 3U);
}

TEST(SentenceSearchDeathTest, NeedsAHypothesis) {
  EXPECT_DEATH(SentenceSearch({.hypotheses = 0}, 1), "needs a hypothesis");
}

}  // namespace
}  // namespace thimble
