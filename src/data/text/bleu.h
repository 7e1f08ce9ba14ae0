// BLEU (Papineni et al., 2002): how many of the words, pairs, triples and quadruples of words of
// translations occur in the reference translations. Two ways of counting:
//   - as fairseq and multi-bleu do, over text that is tokenised already: for results that can be
//     compared with papers of the time ("35.2 tokenised BLEU")
//   - as sacreBLEU does by default, over plain text, with its own tokenizer (13a): for results that
//     can be compared with any other
//
//   Bleu bleu(BleuKind::kTokenized);
//   for (each sentence) bleu.Add(translation, reference);
//   bleu.Score();  // 35.2
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace thimble {

enum class BleuKind : uint8_t {
  kTokenized,  // words as they are; no smoothing: 0 if no four words match
  kSacre13a,   // words as the tokenizer 13a splits them, case kept; exponential smoothing
};

inline constexpr int kBleuOrders = 4;  // words in a row, at most

// The sums over all sentences from which the score follows. Index n: n + 1 words in a row.
struct BleuCounts {
  std::array<int64_t, kBleuOrders> matches{};  // those of the translation that the reference has
  std::array<int64_t, kBleuOrders> totals{};   // all of the translation
  int64_t translation_words = 0;
  int64_t reference_words = 0;
  friend bool operator==(const BleuCounts&, const BleuCounts&) = default;
};

// The score in percent, 0 to 100.
double BleuScore(const BleuCounts& counts, BleuKind kind);

// Adds up sentences; keeps only sums, and memory for the longest sentence. Takes n log n time for a
// sentence of n words.
class Bleu {
 public:
  explicit Bleu(BleuKind kind) : kind_(kind) {}

  void Add(std::string_view translation, std::string_view reference);
  const BleuCounts& counts() const { return counts_; }
  double Score() const { return BleuScore(counts_, kind_); }

 private:
  void AddWords(std::string_view translation, std::string_view reference);

  BleuKind kind_;
  BleuCounts counts_;
};

}  // namespace thimble
