#include "thimble/data/text/subwords/subword_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_paths.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/json.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

using testing::ElementsAre;

MergeList Merges(const std::string& lines) {
  return MergeList::Parse("#version: 0.2\n" + lines).value();
}

std::string SplitWith(const std::string& merges, std::string_view line) {
  const MergeList list = Merges(merges);
  return SubwordSplitter(list).SplitLine(line);
}

std::string Rejoined(std::string_view split) {
  std::string line;
  LineJoiner joiner(line);
  for (auto word = TakeWord(split); !word.empty(); word = TakeWord(split)) joiner.Append(word);
  return line;
}

TEST(SubwordSplitterTest, MergesInTheirOrder) {
  EXPECT_EQ(SplitWith("a b\nab c</w>\n", "abc"), "abc");
  EXPECT_EQ(SplitWith("b c</w>\na b\n", "abc abcd"), "a@@ bc ab@@ c@@ d");
  EXPECT_EQ(SplitWith("ab c\na b\n", "abcd"), "abc@@ d");  // as subword-nmt: when it is possible
}

TEST(SubwordSplitterTest, TheEndOfAWordIsAnotherSymbol) {
  EXPECT_EQ(SplitWith("a b</w>\n", "ab aba cab"), "ab a@@ b@@ a c@@ ab");
  EXPECT_EQ(SplitWith("a b\n", "ab aba"), "a@@ b ab@@ a");
}

TEST(SubwordSplitterTest, EqualNeighboursAreMergedFromTheLeft) {
  EXPECT_EQ(SplitWith("a a\n", "aaa aaaa aaaaa xaaax"),
            "aa@@ a aa@@ a@@ a aa@@ aa@@ a x@@ aa@@ a@@ x");
  EXPECT_EQ(SplitWith("a a\naa aa\n", "aaaaaax"), "aaaa@@ aa@@ x");
}

TEST(SubwordSplitterTest, UnknownCharactersStayAlone) {
  EXPECT_EQ(SplitWith("ä ß</w>\n", "äß 東ß äß😀"), "äß 東@@ ß ä@@ ß@@ 😀");
}

TEST(SubwordSplitterTest, SpacesBecomeSingle) {
  EXPECT_EQ(SplitWith("a b</w>\n", "  ab\t\u00a0 a \r"), "ab a");
  EXPECT_EQ(SplitWith("a b</w>\n", ""), "");
  EXPECT_EQ(SplitWith("a b</w>\n", " \t "), "");
}

TEST(SubwordSplitterTest, WhatIsSplitStaysAsItIs) {
  const char* merges = "a b</w>\nc d\ncd e\n";
  for (const char* line : {"cde@@ ab x", "ab@@ cd@@ ab", "@@ ab", "x@@"}) {
    EXPECT_EQ(SplitWith(merges, line), line);
  }
  EXPECT_EQ(SplitWith(merges, "cde@@ ab cdexab"), "cde@@ ab cde@@ x@@ ab");
}

TEST(SubwordSplitterTest, WordsThatEndInTheMarkCanBeJoinedAgain) {
  const MergeList merges = Merges("@ @\na b\n@@ @\n");
  SubwordSplitter splitter(merges);
  for (const char* word : {"@@", "@@@", "ab@@", "@@@@", "a@@b", "@", "@ab", "</w>", "a</w>"}) {
    std::vector<std::string> subwords;
    std::string line;
    splitter.Split(word, [&](std::string_view subword) {
      subwords.emplace_back(subword);
      line += std::string(subword) + " ";
    });
    EXPECT_EQ(Rejoined(line + "x"), std::string(word) + " x");
    EXPECT_FALSE(subwords.back().ends_with("@@")) << word;
  }
}

TEST(SubwordSplitterTest, AnyBytes) {
  EXPECT_EQ(SplitWith("a b</w>\n", "\xff\xfe"), "\xff@@ \xfe");
  EXPECT_EQ(SplitWith("a b</w>\n", "\x80\x80"), "\x80\x80");
  EXPECT_EQ(SplitWith("a b</w>\n", std::string("\0ab", 3)), std::string("\0@@ ab", 6));
}

// In less time than their square: these are the words that take longest, one merge in each round.
TEST(SubwordSplitterTest, VeryLongWords) {
  std::string lines;
  std::string symbol = "a";
  for (int i = 0; i < 400; ++i) {
    lines += symbol + " b\n";
    symbol += "b";
  }
  const MergeList merges = Merges(lines);
  SubwordSplitter splitter(merges);
  const std::string word = "a" + std::string(99'999, 'b');
  const std::string split = splitter.SplitLine(word);
  EXPECT_TRUE(split.starts_with(symbol + "@@ b@@ b@@ "));
  std::string rest = Rejoined(split);
  EXPECT_EQ(std::erase(rest, ' '), 100);  // as WordReader reads it: as several words
  EXPECT_TRUE(rest == word);
}

TEST(SubwordSplitterTest, AgreesWithSubwordNmt) {
  const auto text = ReadWholeFile(GoldenFolder() + "/bpe.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const Json golden = ParseJson(*text).value();
  const MergeList merges = MergeList::Parse(golden["codes"].text()).value();
  SubwordSplitter splitter(merges);
  ASSERT_GE(golden["splits"].size(), 20U);
  for (const Json& expected : golden["splits"]) {
    const std::string& split = expected["split"].text();
    EXPECT_EQ(splitter.SplitLine(expected["line"].text()), split);
    EXPECT_EQ(splitter.SplitLine(split), split);  // which does not change any more
    EXPECT_EQ(Rejoined(split), expected["line"].text());
  }
}

TEST(SubwordSplitterDeathTest, WrongUse) {
  const MergeList merges = Merges("a b\n");
  SubwordSplitter splitter(merges);
  const std::string word(kMaxWordBytes + 1, 'a');
  EXPECT_DEATH(splitter.Split(word, [](std::string_view) {}), "a word of 1001 bytes");
}

}  // namespace
}  // namespace thimble
