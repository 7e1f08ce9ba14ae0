#include "thimble/data/text/bleu.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "thimble/data/text/tokenize_13a.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line)) {
    words.push_back(word);
  }
  return words;
}

// Numbers that stand for the words, or rows of words, that begin at each place of a sentence: equal
// numbers for equal ones, in both sentences.
using Numbers = std::vector<uint32_t>;
struct NumberedSentences {
  Numbers translation;
  Numbers reference;
};

// Numbers the elements of two lists: equal elements get equal numbers, from 0.
template <class T>
NumberedSentences NumberElements(const std::vector<T>& translation,
                                 const std::vector<T>& reference) {
  std::vector<T> all = translation;
  all.insert(all.end(), reference.begin(), reference.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  const auto number = [&](const std::vector<T>& elements) {
    Numbers numbers;
    for (const T& element : elements) {
      const auto at = std::lower_bound(all.begin(), all.end(), element);
      numbers.push_back(static_cast<uint32_t>(at - all.begin()));
    }
    return numbers;
  };
  return {number(translation), number(reference)};
}

// Each row of words, with the word behind it: the number of the row, then that of the word.
std::vector<uint64_t> Extend(const Numbers& rows, const Numbers& words) {
  std::vector<uint64_t> longer;
  const size_t order = words.size() - rows.size() + 1;  // words in a row
  for (size_t i = 0; i + order < words.size(); ++i) {
    longer.push_back(uint64_t{rows[i]} << 32 | words[i + order]);
  }
  return longer;
}

// How many of the translation's rows the reference has, each as often as the reference has it.
int64_t CountMatches(const NumberedSentences& rows) {
  Numbers unmatched(rows.translation.size() + rows.reference.size());
  for (const uint32_t row : rows.reference) ++unmatched[row];
  int64_t matches = 0;
  for (const uint32_t row : rows.translation) {
    if (unmatched[row] == 0) continue;
    --unmatched[row];
    ++matches;
  }
  return matches;
}

double BrevityPenalty(const BleuCounts& counts) {
  if (counts.translation_words >= counts.reference_words) return 1;
  if (counts.translation_words == 0) return 0;
  return std::exp(1 - static_cast<double>(counts.reference_words) /
                          static_cast<double>(counts.translation_words));
}

}  // namespace

double BleuScore(const BleuCounts& counts, BleuKind kind) {
  const bool any = std::any_of(counts.matches.begin(), counts.matches.end(),
                               [](int64_t matches) { return matches > 0; });
  if (!any) return 0;
  double log_precisions = 0;
  double smoothing = 1;  // halves the precision at each order without a match
  for (size_t i = 0; i < kBleuOrders; ++i) {
    if (counts.totals[i] == 0) return 0;
    auto matches = static_cast<double>(counts.matches[i]);
    if (counts.matches[i] == 0) {
      if (kind == BleuKind::kTokenized) return 0;
      smoothing *= 2;
      matches = 1 / smoothing;
    }
    log_precisions += std::log(matches / static_cast<double>(counts.totals[i]));
  }
  return 100 * BrevityPenalty(counts) * std::exp(log_precisions / kBleuOrders);
}

void Bleu::Add(std::string_view translation, std::string_view reference) {
  if (kind_ == BleuKind::kTokenized) return AddWords(translation, reference);
  AddWords(Tokenize13a(translation), Tokenize13a(reference));
}

void Bleu::AddWords(std::string_view translation, std::string_view reference) {
  const NumberedSentences words = NumberElements(WordsOf(translation), WordsOf(reference));
  counts_.translation_words += std::ssize(words.translation);
  counts_.reference_words += std::ssize(words.reference);
  NumberedSentences rows = words;
  for (size_t i = 0; i < kBleuOrders; ++i) {
    if (i > 0) {
      rows = NumberElements(Extend(rows.translation, words.translation),
                            Extend(rows.reference, words.reference));
    }
    counts_.totals[i] += std::ssize(rows.translation);
    counts_.matches[i] += CountMatches(rows);
  }
}

}  // namespace thimble
