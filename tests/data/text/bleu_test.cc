#include "thimble/data/text/bleu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/test_paths.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

// A score of one sentence.
double OneSentence(BleuKind kind, std::string_view translation, std::string_view reference) {
  Bleu bleu(kind);
  bleu.Add(translation, reference);
  return bleu.Score();
}

TEST(BleuTest, CountsByHand) {
  Bleu bleu(BleuKind::kTokenized);
  bleu.Add("the the the cat sat down", "the cat sat on the mat");
  const BleuCounts counts = bleu.counts();
  EXPECT_EQ(counts.matches, (std::array<int64_t, 4>{4, 2, 1, 0}));  // "the" counts twice
  EXPECT_EQ(counts.totals, (std::array<int64_t, 4>{6, 5, 4, 3}));
  EXPECT_EQ(counts.translation_words, 6);
  EXPECT_EQ(counts.reference_words, 6);
  EXPECT_EQ(bleu.Score(), 0);
}

TEST(BleuTest, ScoresByHand) {
  // 5/6, 4/5, 3/4, 2/3 of the rows match.
  EXPECT_NEAR(OneSentence(BleuKind::kTokenized, "a b c d e x", "a b c d e f"),
              100 * std::pow(5.0 / 6 * 4 / 5 * 3 / 4 * 2 / 3, 0.25), 1e-10);
  // All match, but one word of five is missing.
  EXPECT_NEAR(OneSentence(BleuKind::kTokenized, "a b c d", "a b c d e"), 100 * std::exp(-0.25),
              1e-10);
  EXPECT_NEAR(OneSentence(BleuKind::kTokenized, "a b c d", "a b c d"), 100, 1e-10);
}

TEST(BleuTest, SmoothingHalvesWithEachOrderWithoutMatch) {
  // Matches: 2 of 4 words, 0 of 3 pairs, 0 of 2 triples, 0 of 1.
  EXPECT_NEAR(OneSentence(BleuKind::kSacre13a, "a x b y", "a b c d"),
              100 * std::pow(2.0 / 4 * (1.0 / 2 / 3) * (1.0 / 4 / 2) * (1.0 / 8 / 1), 0.25), 1e-10);
  EXPECT_EQ(OneSentence(BleuKind::kTokenized, "a x b y", "a b c d"), 0);
}

TEST(BleuTest, NothingToCompare) {
  for (const BleuKind kind : {BleuKind::kTokenized, BleuKind::kSacre13a}) {
    EXPECT_EQ(Bleu(kind).Score(), 0);
    EXPECT_EQ(OneSentence(kind, "", ""), 0);
    EXPECT_EQ(OneSentence(kind, "", "a b c d"), 0);
    EXPECT_EQ(OneSentence(kind, "a b c d", ""), 0);
    EXPECT_EQ(OneSentence(kind, "a b c", "a b c"), 0);  // no four words
  }
}

TEST(BleuTest, CaseMatters) {
  EXPECT_LT(OneSentence(BleuKind::kSacre13a, "The cat sat down .", "the cat sat down ."), 100);
}

TEST(BleuTest, SpacesAreNotWords) {
  EXPECT_NEAR(OneSentence(BleuKind::kTokenized, "  a b\tc  d ", "a b c d"), 100, 1e-10);
}

TEST(BleuTest, LongLinesTakeNoLongerThanTheirSorting) {
  std::string translation;
  std::string reference;
  for (int i = 0; i < 100'000; ++i) {
    translation += "w" + std::to_string(i % 1000) + " ";
    reference += "w" + std::to_string(i % 999) + " ";
  }
  const double score = OneSentence(BleuKind::kTokenized, translation, reference);
  EXPECT_GT(score, 90);
  EXPECT_LT(score, 100);
}

TEST(BleuTest, AgreesWithSacrebleu) {
  const auto text = ReadWholeFile(GoldenFolder() + "/bleu.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto golden = ParseJson(*text);
  ASSERT_TRUE(golden.ok());
  ASSERT_GE((*golden)["cases"].size(), 17U);
  for (const Json& expected : (*golden)["cases"]) {
    SCOPED_TRACE(expected["name"].text());
    Bleu tokenized(BleuKind::kTokenized);
    Bleu sacre(BleuKind::kSacre13a);
    for (size_t i = 0; i < expected["references"].size(); ++i) {
      const std::string& translation = expected["translations"][i].text();
      const std::string& reference = expected["references"][i].text();
      tokenized.Add(translation, reference);
      sacre.Add(translation, reference);
    }
    // The golden file has eight decimals.
    EXPECT_NEAR(tokenized.Score(), expected["tokenized"].number(), 1e-7);
    EXPECT_NEAR(sacre.Score(), expected["sacre_13a"].number(), 1e-7);
    for (size_t i = 0; i < kBleuOrders; ++i) {
      EXPECT_EQ(sacre.counts().matches[i], expected["matches_13a"][i].integer<int64_t>());
      EXPECT_EQ(sacre.counts().totals[i], expected["totals_13a"][i].integer<int64_t>());
    }
    EXPECT_EQ(sacre.counts().translation_words, expected["words_13a"][0].integer<int64_t>());
    EXPECT_EQ(sacre.counts().reference_words, expected["words_13a"][1].integer<int64_t>());
  }
}

}  // namespace
}  // namespace thimble
