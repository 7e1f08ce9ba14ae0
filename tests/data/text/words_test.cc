#include "thimble/data/text/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace thimble {
namespace {

std::vector<std::string> AllWords(std::string_view line) {
  std::vector<std::string> words;
  for (auto word = TakeWord(line); !word.empty(); word = TakeWord(line)) words.emplace_back(word);
  EXPECT_EQ(line, "");
  return words;
}

std::string JoinWords(const std::vector<std::string>& words) {
  std::string line;
  LineJoiner joiner(line);
  for (const std::string& word : words) joiner.Append(word);
  return line;
}

TEST(WordsTest, AreWhatIsBetweenWhitespace) {
  EXPECT_THAT(AllWords("das haus ."), testing::ElementsAre("das", "haus", "."));
  EXPECT_THAT(AllWords("  das \t haus\r"), testing::ElementsAre("das", "haus"));
  EXPECT_THAT(AllWords(""), testing::IsEmpty());
  EXPECT_THAT(AllWords(" \v\f "), testing::IsEmpty());
  EXPECT_THAT(AllWords("ä ö@@ ü"), testing::ElementsAre("ä", "ö@@", "ü"));
}

// All characters for which Python's str.isspace() is true.
TEST(WordsTest, UnicodeWhitespaceSeparates) {
  for (const char* space :
       {"\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",
        "\x1f",   " ",      "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002",
        "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
        "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"}) {
    EXPECT_EQ(SpaceBytes(std::string(space) + "x"), std::string(space).size());
    EXPECT_THAT(AllWords(std::string("a") + space + "b"), testing::ElementsAre("a", "b"));
  }
}

TEST(WordsTest, OtherCharactersDoNot) {
  // Neighbours of whitespace, a zero-width space, a byte order mark, and lead bytes alone.
  for (const char* text : {"\u0084", "\u0086", "\u009f",   "\u00a1",   "\u1681", "\u1fff", "\u200b",
                           "\u2027", "\u202a", "\u2030",   "\u205e",   "\u2060", "\u3001", "\ufeff",
                           "\xc2",   "\xe2",   "\xe2\x80", "\xe3\x80", "\x1b",   "\x7f",   "!"}) {
    EXPECT_EQ(SpaceBytes(text), 0U) << text;
    EXPECT_EQ(WordBytes(text), std::string(text).size()) << text;
  }
  EXPECT_EQ(SpaceBytes(""), 0U);
}

TEST(WordsTest, LongWordsAreTakenInParts) {
  const std::string most(kMaxWordBytes, 'x');
  const std::string text = most + " " + most + "y z";
  std::string_view line = text;
  EXPECT_EQ(TakeShortWord(line).size(), kMaxWordBytes);
  EXPECT_EQ(TakeShortWord(line).size(), kMaxWordBytes - 1);
  EXPECT_EQ(TakeShortWord(line), "xy");
  EXPECT_EQ(TakeShortWord(line), "z");
  EXPECT_EQ(TakeShortWord(line), "");
}

TEST(WordsTest, LongWordsAreNotCutWithinACharacter) {
  const std::string text = std::string(kMaxWordBytes - 1, 'x') + "äöü";
  std::string_view line = text;
  EXPECT_EQ(TakeShortWord(line).size(), kMaxWordBytes - 1);
  EXPECT_EQ(TakeShortWord(line), "äöü");
}

TEST(WordsTest, BytesThatAreNoCharactersAreTakenSomehow) {
  std::string rest(2 * kMaxWordBytes + 1, '\x80');
  std::string_view line = rest;
  EXPECT_EQ(TakeShortWord(line).size(), kMaxWordBytes);
  EXPECT_EQ(TakeShortWord(line).size(), kMaxWordBytes);
  EXPECT_EQ(TakeShortWord(line).size(), 1U);
}

TEST(WordsTest, FirstCharacter) {
  EXPECT_EQ(FirstCharacterBytes("ab"), 1U);
  EXPECT_EQ(FirstCharacterBytes("äb"), 2U);
  EXPECT_EQ(FirstCharacterBytes("€"), 3U);
  EXPECT_EQ(FirstCharacterBytes("😀😀"), 4U);
  EXPECT_EQ(FirstCharacterBytes("\xff"), 1U);
  EXPECT_EQ(FirstCharacterBytes("\x80\x80x"), 2U);
}

TEST(WordsTest, SubwordsAreJoined) {
  EXPECT_EQ(JoinWords({"ein", "haus", "."}), "ein haus .");
  EXPECT_EQ(JoinWords({"haus@@", "tür@@", "en", "auf"}), "haustüren auf");
  EXPECT_EQ(JoinWords({"haus@@"}), "haus");
  EXPECT_EQ(JoinWords({"@@", "a"}), "a");
  EXPECT_EQ(JoinWords({"a@", "b"}), "a@ b");
  EXPECT_EQ(JoinWords({}), "");
}

}  // namespace
}  // namespace thimble
