#include "thimble/data/text/subwords/split_into_entries.h"

#include <gmock/gmock.h>

#include <string>

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Split(const Dictionary& dictionary, std::string_view word) {
  std::vector<std::string> entries;
  for (const int32_t entry : SplitIntoEntries(dictionary, word)) {
    entries.emplace_back(dictionary.word(entry));
  }
  return entries;
}

Dictionary Of(const std::vector<std::string_view>& words) { return Dictionary(words); }

TEST(SplitIntoEntries, TakesTheFewest) {
  const Dictionary dictionary = Of({"vier@@", "und@@", "zwanzig", "zw@@", "anzig", "vierund@@"});
  EXPECT_THAT(Split(dictionary, "vierundzwanzig"), ElementsAre("vierund@@", "zwanzig"));
}

TEST(SplitIntoEntries, OfEquallyManyTheLongestFirst) {
  const Dictionary dictionary = Of({"a@@", "bc", "ab@@", "c"});
  EXPECT_THAT(Split(dictionary, "abc"), ElementsAre("ab@@", "c"));
}

TEST(SplitIntoEntries, AWordThatIsThereIsOneEntry) {
  EXPECT_THAT(Split(Of({"ab", "a@@", "b"}), "ab"), ElementsAre("ab"));
}

TEST(SplitIntoEntries, OnlyTheLastEntryEndsTheWord) {
  EXPECT_THAT(Split(Of({"vier", "und", "zwanzig"}), "vierundzwanzig"), IsEmpty());
  EXPECT_THAT(Split(Of({"vier@@", "und@@"}), "vierund"), IsEmpty());
}

TEST(SplitIntoEntries, WhatCannotBeSplit) {
  const Dictionary dictionary = Of({"a@@", "a"});
  EXPECT_THAT(Split(dictionary, ""), IsEmpty());
  EXPECT_THAT(Split(dictionary, "ab"), IsEmpty());
  EXPECT_THAT(Split(dictionary, "\xFF\xC3"), IsEmpty());
  EXPECT_EQ(Split(dictionary, std::string(kMostBytesToSplit, 'a')).size(), kMostBytesToSplit);
  EXPECT_THAT(Split(dictionary, std::string(kMostBytesToSplit + 1, 'a')), IsEmpty());
}

}  // namespace
}  // namespace thimble
