#include "thimble/data/text/subwords/merge_learner.h"

#include <algorithm>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

// As subword-nmt's --min-frequency.
constexpr int64_t kMinPairCount = 2;

// The words as rows of symbols. Rows become shorter by merges; their places stay.
struct SymbolRows {
  struct Row {
    uint32_t begin = 0;
    uint32_t size = 0;
    int64_t count = 0;  // of the word in the text
  };
  WordTable texts;  // of the symbols, with marks
  std::vector<int32_t> symbols;
  std::vector<Row> rows;

  void Add(std::string_view word, int64_t count) {
    const auto begin = static_cast<uint32_t>(symbols.size());
    std::string text;
    while (!word.empty()) {
      text = word.substr(0, FirstCharacterBytes(word));
      word.remove_prefix(text.size());
      if (word.empty()) text += kWordEndMark;
      symbols.push_back(texts.FindOrAdd(text));
    }
    rows.push_back({begin, static_cast<uint32_t>(symbols.size()) - begin, count});
  }
  std::span<int32_t> SymbolsOf(int32_t row) {
    const Row& place = rows[static_cast<size_t>(row)];
    return std::span(symbols).subspan(place.begin, place.size);
  }
};

// Pairs of neighbours: how often each occurs, and in which rows.
class PairCounts {
 public:
  explicit PairCounts(const WordTable& texts) : texts_(texts), queue_(Rarer{this}) {}

  const NumberPair& pair(int32_t index) const { return table_.pair(index); }

  // Another occurrence, `count` times in the text. The most frequent pair is found again only after
  // QueueRaised.
  void Raise(const NumberPair& pair, int32_t row, int64_t count) {
    const int32_t index = table_.FindOrAdd(pair);
    if (index == std::ssize(states_)) states_.emplace_back();
    State& state = states_[static_cast<size_t>(index)];
    state.count += count;
    if (!state.raised) raised_.push_back(index);
    state.raised = true;
    if (state.places >= 0 && places_[static_cast<size_t>(state.places)].row == row) return;
    places_.push_back({row, state.places});
    state.places = static_cast<int32_t>(places_.size()) - 1;
  }
  void Lower(const NumberPair& pair, int64_t count) {
    State& state = states_[static_cast<size_t>(table_.Find(pair))];
    state.count -= count;
    THIMBLE_DCHECK(state.count >= 0, "a pair that occurs {} times", state.count);
  }
  void QueueRaised() {
    for (const int32_t index : raised_) {
      State& state = states_[static_cast<size_t>(index)];
      state.raised = false;
      if (state.count >= kMinPairCount) queue_.push({state.count, index});
    }
    raised_.clear();
  }

  // The most frequent pair, or -1 if none occurs often enough. Entries of the queue whose counts
  // have become smaller since are put back where they belong.
  int32_t TakeMostFrequent() {
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      const int64_t count = states_[static_cast<size_t>(entry.pair)].count;
      if (count == entry.count) return entry.pair;
      if (count >= kMinPairCount && count < entry.count) queue_.push({count, entry.pair});
    }
    return -1;
  }

  // The rows where the pair has occurred; it may have disappeared from them.
  std::vector<int32_t> RowsOf(int32_t pair) const {
    std::vector<int32_t> rows;
    for (int32_t place = states_[static_cast<size_t>(pair)].places; place >= 0;
         place = places_[static_cast<size_t>(place)].next) {
      rows.push_back(places_[static_cast<size_t>(place)].row);
    }
    return rows;
  }

 private:
  struct State {
    int64_t count = 0;    // in the text
    int32_t places = -1;  // the first of a list in places_, the last row first
    bool raised = false;  // is in raised_
  };
  struct Place {
    int32_t row = 0;
    int32_t next = -1;
  };
  struct Entry {
    int64_t count = 0;
    int32_t pair = 0;
  };
  struct Rarer {
    const PairCounts* counts;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.count != b.count) return a.count < b.count;
      return counts->TextsOf(a.pair) < counts->TextsOf(b.pair);
    }
  };

  std::pair<std::string_view, std::string_view> TextsOf(int32_t index) const {
    const NumberPair& symbols = pair(index);
    return {texts_.word(symbols.first), texts_.word(symbols.second)};
  }

  const WordTable& texts_;
  PairTable table_;
  std::vector<State> states_;  // by pair
  std::vector<Place> places_;
  std::vector<int32_t> raised_;
  std::priority_queue<Entry, std::vector<Entry>, Rarer> queue_;
};

class Learner {
 public:
  explicit Learner(const WordCounts& words) : pairs_(rows_.texts) {
    for (int32_t i = 0; i < words.size(); ++i) {
      if (CanLearnFrom(words.word(i))) rows_.Add(words.word(i), words.count(i));
    }
    for (int32_t row = 0; row < std::ssize(rows_.rows); ++row) {
      const std::span<const int32_t> symbols = rows_.SymbolsOf(row);
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        pairs_.Raise({symbols[i], symbols[i + 1]}, row, CountOf(row));
      }
    }
    pairs_.QueueRaised();
  }

  // Does the next merge and appends it; false if there is none.
  Result<bool> LearnNext(MergeList& merges) {
    const int32_t found = pairs_.TakeMostFrequent();
    if (found < 0) return false;
    const NumberPair pair = pairs_.pair(found);
    const std::string first(rows_.texts.word(pair.first));
    const std::string second(rows_.texts.word(pair.second));
    THIMBLE_TRY(merges.Add(first, second));
    const int32_t result = rows_.texts.FindOrAdd(first + second);
    for (const int32_t row : pairs_.RowsOf(found)) MergeInRow(row, pair, result);
    pairs_.QueueRaised();
    return true;
  }

 private:
  int64_t CountOf(int32_t row) const { return rows_.rows[static_cast<size_t>(row)].count; }

  // Joins all occurrences, from left to right. The pairs counted are always those of the symbols
  // written so far and the ones still to come.
  void MergeInRow(int32_t row, const NumberPair& pair, int32_t result) {
    const std::span<int32_t> symbols = rows_.SymbolsOf(row);
    const int64_t count = CountOf(row);
    size_t kept = 0;
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (i + 1 == symbols.size() || NumberPair{symbols[i], symbols[i + 1]} != pair) {
        symbols[kept++] = symbols[i];
        continue;
      }
      pairs_.Lower(pair, count);
      if (kept > 0) {
        pairs_.Lower({symbols[kept - 1], pair.first}, count);
        pairs_.Raise({symbols[kept - 1], result}, row, count);
      }
      ++i;
      if (i + 1 < symbols.size()) {
        pairs_.Lower({pair.second, symbols[i + 1]}, count);
        pairs_.Raise({result, symbols[i + 1]}, row, count);
      }
      symbols[kept++] = result;
    }
    rows_.rows[static_cast<size_t>(row)].size = static_cast<uint32_t>(kept);
  }

  SymbolRows rows_;
  PairCounts pairs_;
};

}  // namespace

Result<MergeList> LearnMerges(const WordCounts& words, int32_t most) {
  THIMBLE_CHECK(most >= 1 && most <= kMaxMerges, "{} merges", most);
  MergeList merges;
  Learner learner(words);
  while (merges.size() < most) {
    THIMBLE_ASSIGN_OR_RETURN(const bool learned, learner.LearnNext(merges));
    if (!learned) break;
  }
  if (merges.size() > 0) return merges;
  return BadInput("no two characters occur together twice in the words of the text");
}

}  // namespace thimble
