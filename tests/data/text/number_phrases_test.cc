#include "thimble/data/text/number_phrases.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "thimble/data/text/words.h"

namespace thimble {
namespace {

constexpr uint32_t kPhrases = 40'000;

std::string PhraseLine(const TokenList& tokens) {
  std::string line;
  LineJoiner joiner(line);
  for (const std::string_view token : tokens.tokens()) joiner.Append(token);
  return line;
}

// English by German, of many phrases.
const std::map<std::string, std::string>& ManyPhrases() {
  static const std::map<std::string, std::string> phrases = [] {
    const RandomSource source(1, RandomPurpose::kNumbers);
    std::map<std::string, std::string> all;
    for (uint32_t i = 0; i < kPhrases; ++i) {
      const NumberPhrase phrase = DrawNumberPhrase(source, 0, i, 0);
      const std::string german = PhraseLine(phrase.german);
      const std::string english = PhraseLine(phrase.english);
      const auto [known, added] = all.emplace(german, english);
      EXPECT_EQ(known->second, english) << german;  // one translation each
    }
    return all;
  }();
  return phrases;
}

TEST(NumberPhrasesTest, AreRightInBothLanguages) {
  const std::map<std::string, std::string> expected = {
      {"Viertel vor drei", "a quarter to three"},
      {"um Viertel nach eins", "at a quarter past one"},
      {"halb vier", "half past three"},
      {"gegen halb eins", "around half past twelve"},
      {"fünf vor halb acht", "twenty five past seven"},
      {"fünf nach halb acht", "twenty five to eight"},
      {"zehn vor sechs", "ten to six"},
      {"ein Uhr nachts", "one o'clock at night"},
      {"der dritte März", "the third of march"},
      {"am ersten Mai", "on the first of may"},
      {"ein Euro", "one euro"},
      {"ein Cent", "one cent"},
      {"drei Euro fünfzig", "three euros fifty"},
      {"zum dritten Mal", "for the third time"},
      {"jeder zweite", "every second"},
      {"zwei Prozent", "two percent"},
      {"null Komma fünf", "zero point five"},
      {"siebzehn", "seventeen"},
  };
  // Some of these few are drawn; each that is must be right.
  size_t seen = 0;
  for (const auto& [german, english] : expected) {
    const auto drawn = ManyPhrases().find(german);
    if (drawn == ManyPhrases().end()) continue;
    EXPECT_EQ(drawn->second, english) << german;
    ++seen;
  }
  EXPECT_GE(seen, 12U);
}

TEST(NumberPhrasesTest, HaveManyForms) {
  EXPECT_GT(ManyPhrases().size(), kPhrases / 2);
  const auto count = [](std::string_view word) {
    int64_t phrases = 0;
    for (const auto& [german, english] : ManyPhrases()) {
      phrases += german.find(word) != std::string::npos ? 1 : 0;
    }
    return phrases;
  };
  for (const char* word : {"Uhr", "halb", "Viertel", "Euro", "Cent", "Prozent", "Komma", "Mal",
                           "jeder", "im ", "am ", "März", "Sonntag", "tausend"}) {
    EXPECT_GT(count(word), 50) << word;
  }
}

TEST(NumberPhrasesTest, TokensAreThoseListed) {
  const auto german = GermanPhraseTokens();
  const auto english = EnglishPhraseTokens();
  std::set<std::string_view> unused_german(german.begin(), german.end());
  std::set<std::string_view> unused_english(english.begin(), english.end());
  EXPECT_EQ(unused_german.size(), german.size());
  EXPECT_EQ(unused_english.size(), english.size());
  const std::set<std::string_view> known_german = unused_german;
  const std::set<std::string_view> known_english = unused_english;
  const RandomSource source(2, RandomPurpose::kNumbers);
  for (uint32_t i = 0; i < kPhrases; ++i) {
    const NumberPhrase phrase = DrawNumberPhrase(source, 0, i, 0);
    for (const std::string_view token : phrase.german.tokens()) {
      ASSERT_TRUE(known_german.contains(token)) << token;
      unused_german.erase(token);
    }
    for (const std::string_view token : phrase.english.tokens()) {
      ASSERT_TRUE(known_english.contains(token)) << token;
      unused_english.erase(token);
    }
  }
  EXPECT_TRUE(unused_german.empty()) << *unused_german.begin();
  EXPECT_TRUE(unused_english.empty()) << *unused_english.begin();
}

TEST(NumberPhrasesTest, DependOnAllCounters) {
  const RandomSource source(1, RandomPurpose::kNumbers);
  std::set<std::string> lines;
  for (uint32_t i = 1; i < 100; ++i) {
    lines.insert(PhraseLine(DrawNumberPhrase(source, i, 0, 0).german));
    lines.insert(PhraseLine(DrawNumberPhrase(source, 0, i, 0).german));
    lines.insert(PhraseLine(DrawNumberPhrase(source, 0, 0, i).german));
  }
  EXPECT_GT(lines.size(), 200U);
}

}  // namespace
}  // namespace thimble
