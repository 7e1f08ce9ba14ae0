#include "thimble/data/text/number_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "thimble/base/function_ref.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

std::string LineOf(FunctionRef<void(TokenList&)> add) {
  TokenList tokens;
  add(tokens);
  std::string line;
  LineJoiner joiner(line);
  for (const std::string_view token : tokens.tokens()) joiner.Append(token);
  return line;
}
std::string German(int32_t n, GermanEnd end = GermanEnd::kAlone) {
  return LineOf([&](TokenList& tokens) { AddGermanNumber(n, end, tokens); });
}
std::string English(int32_t n) {
  return LineOf([&](TokenList& tokens) { AddEnglishNumber(n, tokens); });
}
std::string GermanOrdinal(int32_t n, GermanCase ending = GermanCase::kPlain) {
  return LineOf([&](TokenList& tokens) { AddGermanOrdinal(n, ending, tokens); });
}
std::string EnglishOrdinal(int32_t n) {
  return LineOf([&](TokenList& tokens) { AddEnglishOrdinal(n, tokens); });
}
std::string GermanYear(int32_t year) {
  return LineOf([&](TokenList& tokens) { AddGermanYear(year, tokens); });
}
std::string EnglishYear(int32_t year) {
  return LineOf([&](TokenList& tokens) { AddEnglishYear(year, tokens); });
}

TEST(NumberWordsTest, GermanNumbers) {
  EXPECT_EQ(German(0), "null");
  EXPECT_EQ(German(1), "eins");
  EXPECT_EQ(German(6), "sechs");
  EXPECT_EQ(German(12), "zwölf");
  EXPECT_EQ(German(13), "dreizehn");
  EXPECT_EQ(German(16), "sechzehn");
  EXPECT_EQ(German(17), "siebzehn");
  EXPECT_EQ(German(20), "zwanzig");
  EXPECT_EQ(German(21), "einundzwanzig");
  EXPECT_EQ(German(36), "sechsunddreißig");
  EXPECT_EQ(German(67), "siebenundsechzig");
  EXPECT_EQ(German(77), "siebenundsiebzig");
  EXPECT_EQ(German(100), "einhundert");
  EXPECT_EQ(German(101), "einhunderteins");
  EXPECT_EQ(German(111), "einhundertelf");
  EXPECT_EQ(German(999), "neunhundertneunundneunzig");
  EXPECT_EQ(German(1000), "eintausend");
  EXPECT_EQ(German(1001), "eintausendeins");
  EXPECT_EQ(German(1234), "eintausendzweihundertvierunddreißig");
  EXPECT_EQ(German(21'000), "einundzwanzigtausend");
  EXPECT_EQ(German(101'016), "einhunderteintausendsechzehn");
  EXPECT_EQ(German(700'070), "siebenhunderttausendsiebzig");
  EXPECT_EQ(German(1, GermanEnd::kBeforeNoun), "ein");
  EXPECT_EQ(German(21, GermanEnd::kBeforeNoun), "einundzwanzig");
}

TEST(NumberWordsTest, EnglishNumbers) {
  EXPECT_EQ(English(0), "zero");
  EXPECT_EQ(English(13), "thirteen");
  EXPECT_EQ(English(40), "forty");
  EXPECT_EQ(English(58), "fifty eight");
  EXPECT_EQ(English(100), "one hundred");
  EXPECT_EQ(English(115), "one hundred fifteen");
  EXPECT_EQ(English(1234), "one thousand two hundred thirty four");
  EXPECT_EQ(English(101'016), "one hundred one thousand sixteen");
  EXPECT_EQ(English(999'999), "nine hundred ninety nine thousand nine hundred ninety nine");
}

TEST(NumberWordsTest, Ordinals) {
  const auto with_n = [](int32_t n) { return GermanOrdinal(n, GermanCase::kWithN); };
  EXPECT_EQ(GermanOrdinal(1), "erste");
  EXPECT_EQ(GermanOrdinal(2), "zweite");
  EXPECT_EQ(with_n(3), "dritten");
  EXPECT_EQ(GermanOrdinal(4), "vierte");
  EXPECT_EQ(with_n(6), "sechsten");
  EXPECT_EQ(GermanOrdinal(7), "siebte");
  EXPECT_EQ(GermanOrdinal(8), "achte");
  EXPECT_EQ(with_n(11), "elften");
  EXPECT_EQ(GermanOrdinal(17), "siebzehnte");
  EXPECT_EQ(GermanOrdinal(19), "neunzehnte");
  EXPECT_EQ(GermanOrdinal(20), "zwanzigste");
  EXPECT_EQ(with_n(31), "einunddreißigsten");
  EXPECT_EQ(GermanOrdinal(100), "einhundertste");
  EXPECT_EQ(GermanOrdinal(101), "einhunderterste");
  EXPECT_EQ(GermanOrdinal(103), "einhundertdritte");
  EXPECT_EQ(GermanOrdinal(112), "einhundertzwölfte");
  EXPECT_EQ(with_n(988), "neunhundertachtundachtzigsten");
  EXPECT_EQ(EnglishOrdinal(1), "first");
  EXPECT_EQ(EnglishOrdinal(12), "twelfth");
  EXPECT_EQ(EnglishOrdinal(20), "twentieth");
  EXPECT_EQ(EnglishOrdinal(23), "twenty third");
  EXPECT_EQ(EnglishOrdinal(100), "one hundredth");
  EXPECT_EQ(EnglishOrdinal(101), "one hundred first");
  EXPECT_EQ(EnglishOrdinal(340), "three hundred fortieth");
  EXPECT_EQ(EnglishOrdinal(999), "nine hundred ninety ninth");
}

TEST(NumberWordsTest, Years) {
  EXPECT_EQ(GermanYear(1984), "neunzehnhundertvierundachtzig");
  EXPECT_EQ(GermanYear(1900), "neunzehnhundert");
  EXPECT_EQ(GermanYear(1101), "elfhunderteins");
  EXPECT_EQ(GermanYear(2000), "zweitausend");
  EXPECT_EQ(GermanYear(2014), "zweitausendvierzehn");
  EXPECT_EQ(EnglishYear(1984), "nineteen eighty four");
  EXPECT_EQ(EnglishYear(1900), "nineteen hundred");
  EXPECT_EQ(EnglishYear(1905), "nineteen oh five");
  EXPECT_EQ(EnglishYear(2000), "two thousand");
  EXPECT_EQ(EnglishYear(2014), "two thousand fourteen");
}

TEST(NumberWordsTest, DifferentNumbersAreDifferent) {
  std::set<std::string> german;
  std::set<std::string> english;
  for (int32_t n = 0; n < 1'000'000; n += n < 3000 ? 1 : 4999) {
    EXPECT_TRUE(german.insert(German(n)).second) << n;
    EXPECT_TRUE(english.insert(English(n)).second) << n;
  }
}

TEST(NumberWordsDeathTest, OutOfRange) {
  EXPECT_DEATH(German(1'000'000), "number 1000000");
  EXPECT_DEATH(German(-1), "number -1");
  EXPECT_DEATH(German(101, GermanEnd::kBeforeNoun), "101 things");
  EXPECT_DEATH(GermanOrdinal(0), "ordinal 0");
  EXPECT_DEATH(EnglishOrdinal(1000), "ordinal 1000");
  EXPECT_DEATH(GermanYear(1099), "year 1099");
  TokenList tokens;
  for (size_t i = 0; i < TokenList::kMaxTokens; ++i) tokens.Add("x");
  EXPECT_DEATH(tokens.Add("x"), "more than 48 tokens");
}

}  // namespace
}  // namespace thimble
