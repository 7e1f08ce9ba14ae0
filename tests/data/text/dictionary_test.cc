#include "thimble/data/text/dictionary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/data/fake_dataset.h"
#include "thimble/data/text/word_reader.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class DictionaryTest : public ::testing::Test {
 protected:
  // The error of reading a file with this content, without the path.
  std::string ReadError(const std::string& content) {
    folder_.Write("dict.de.txt", content);
    const auto dictionary = Dictionary::Read(folder_.File("dict.de.txt"));
    if (dictionary.ok()) return "read";
    EXPECT_EQ(dictionary.error().kind, ErrorKind::kBadInput);
    const std::string place = folder_.File("dict.de.txt") + ": ";
    EXPECT_TRUE(dictionary.error().message.starts_with(place)) << dictionary.error().message;
    return dictionary.error().message.substr(place.size());
  }

  TestFolder folder_{"dictionary"};
};

Dictionary BuildFrom(const std::vector<std::string>& words, const DictionaryOptions& options = {}) {
  DictionaryBuilder builder;
  for (const std::string& word : words) EXPECT_TRUE(builder.Count(word).ok());
  return builder.Build(options);
}

TEST_F(DictionaryTest, SpecialEntriesComeFirst) {
  const Dictionary dictionary = BuildFrom({"a"});
  EXPECT_EQ(dictionary.size(), 5);
  EXPECT_EQ(dictionary.word(0), "<s>");
  EXPECT_EQ(dictionary.word(1), "<pad>");
  EXPECT_EQ(dictionary.word(2), "</s>");
  EXPECT_EQ(dictionary.word(3), "<unk>");
  EXPECT_EQ(dictionary.word(4), "a");
  EXPECT_EQ(dictionary.Find("a"), 4);
  EXPECT_EQ(dictionary.Find("b"), Dictionary::kUnknown);
}

TEST_F(DictionaryTest, WordsAreOrderedByFrequencyThenByBytes) {
  const Dictionary dictionary =
      BuildFrom({"b", "ä", "c", "a", "c", "z", "ä", "c", "B", "b", "a", "@@"});
  EXPECT_EQ(dictionary.ToText(), "c 3\na 2\nb 2\nä 2\n@@ 1\nB 1\nz 1\n");
  EXPECT_EQ(dictionary.count(4), 3);
  EXPECT_EQ(dictionary.count(Dictionary::kEnd), 0);
}

TEST_F(DictionaryTest, RareWordsCanBeLeftOut) {
  const std::vector<std::string> words = {"a", "a", "a", "b", "b", "c"};
  EXPECT_EQ(BuildFrom(words, {.min_count = 2}).ToText(), "a 3\nb 2\n");
  EXPECT_EQ(BuildFrom(words, {.max_entries = 5}).ToText(), "a 3\n");
}

TEST_F(DictionaryTest, SizeIsPaddedAsFairseqDoes) {
  EXPECT_EQ(BuildFrom({"a"}, {.multiple_of = 8}).ToText(),
            "a 1\nmadeupword0000 0\nmadeupword0001 0\nmadeupword0002 0\n");
  EXPECT_EQ(BuildFrom({"a", "b", "c", "d"}, {.multiple_of = 8}).size(), 8);
  EXPECT_EQ(BuildFrom({"a", "b", "madeupword0000"}, {.multiple_of = 8}).ToText(),
            "a 1\nb 1\nmadeupword0000 1\nmadeupword0001 0\n");
}

TEST_F(DictionaryTest, CountsTheWordsOfAFile) {
  folder_.Write("text", "ein haus und ein ga@@ rten\n\nein haus <pad> </s>\n");
  Crc64 checksum;
  const auto file = OpenTextFile(folder_.File("text"), checksum);
  ASSERT_TRUE(file.ok());
  DictionaryBuilder builder;
  ASSERT_TRUE(builder.CountFile(*file).ok());
  EXPECT_EQ(builder.Build({}).ToText(), "ein 3\nhaus 2\nga@@ 1\nrten 1\nund 1\n");
}

TEST_F(DictionaryTest, WordsLikeSpecialEntriesAreUnknown) {
  const Dictionary dictionary = BuildFrom({"a", "<pad>", "</s>"});
  EXPECT_EQ(dictionary.size(), 5);
  for (const char* word : {"<s>", "<pad>", "</s>", "<unk>"}) {
    EXPECT_EQ(dictionary.Find(word), Dictionary::kUnknown);
  }
}

TEST_F(DictionaryTest, ReadsWhatItWrites) {
  const Dictionary dictionary = BuildFrom({"x", "ein", "ein", "größe@@", "1"}, {.multiple_of = 8});
  folder_.Write("dict.de.txt", dictionary.ToText());
  const auto read = Dictionary::Read(folder_.File("dict.de.txt"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->ToText(), dictionary.ToText());
  EXPECT_EQ(read->Find("größe@@"), dictionary.Find("größe@@"));
}

TEST_F(DictionaryTest, ReadsLinesOfOtherSystems) {
  folder_.Write("dict.de.txt", "a 12\r\nb 0\r\nc 9223372036854775807");
  const auto read = Dictionary::Read(folder_.File("dict.de.txt"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->ToText(), "a 12\nb 0\nc 9223372036854775807\n");
}

TEST_F(DictionaryTest, MalformedLines) {
  EXPECT_EQ(ReadError(""), "file is empty, expected a word and its count in each line");
  EXPECT_EQ(ReadError("a 1\nb\n"), "line 2: expected a word, a space and a count, got \"b\"");
  EXPECT_EQ(ReadError("a 1\n\nb 1\n"), "line 2: expected a word, a space and a count, got \"\"");
  EXPECT_EQ(ReadError("a x\n"),
            "line 1: the count of \"a\" is \"x\", expected a number from 0 to 9223372036854775807");
  for (const char* line : {"a -1", "a 1.5", "a ", "a 9223372036854775808", "a +1"}) {
    EXPECT_THAT(ReadError(line), HasSubstr("line 1: the count of \"a\" is"));
  }
  EXPECT_EQ(ReadError(" 5\n"), "line 1: \"\" is not one word");
  EXPECT_EQ(ReadError("a b 5\n"), "line 1: \"a b\" is not one word");
  EXPECT_THAT(ReadError("a\u00a0b 5\n"), HasSubstr("is not one word"));
  EXPECT_THAT(ReadError("\xff 5\n"), HasSubstr("line 1: \"\\ufffd\" is not UTF-8"));
  EXPECT_EQ(ReadError("a 1\nb 1\na 2\n"), "line 3: \"a\" occurs a second time, first in line 1");
  EXPECT_THAT(ReadError("a 1\n<pad> 1\n"), HasSubstr("line 2: \"<pad>\" is a special entry"));
}

TEST_F(DictionaryTest, MissingFile) {
  const auto read = Dictionary::Read(folder_.File("none"));
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message,
            folder_.File("none") + ": cannot open: No such file or directory");
}

TEST_F(DictionaryTest, TooLargeFiles) {
  EXPECT_EQ(ReadError("a 1\n" + std::string(kMaxWordBytes + 1, 'x') + " 1\n").substr(0, 11),
            "line 2: \"xx");
  EXPECT_EQ(ReadError(std::string(kMaxWordBytes, 'x') + " 1\n"), "read");
  std::string many;
  for (int i = 0; i < kMaxDictionaryEntries - Dictionary::kNumSpecial; ++i) {
    many += std::to_string(i) + " 1\n";
  }
  EXPECT_EQ(ReadError(many), "read");
  EXPECT_EQ(ReadError(many + "a 1\n"), "line 262141: too many words, expected at most 262140");
  folder_.Write("dict.de.txt", "a 1\n");
  std::filesystem::resize_file(folder_.File("dict.de.txt"), kMaxDictionaryBytes + 1);
  const auto read = Dictionary::Read(folder_.File("dict.de.txt"));
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("has 16777217 bytes, expected at most 16777216"));
}

TEST_F(DictionaryTest, TextWithTooManyWords) {
  DictionaryBuilder builder;
  for (int i = 0; i < kMaxDictionaryEntries - Dictionary::kNumSpecial; ++i) {
    ASSERT_TRUE(builder.Count(std::to_string(i)).ok());
  }
  const auto error = builder.Count("one more");
  ASSERT_FALSE(error.ok());
  EXPECT_THAT(error.error().message, HasSubstr("more than 262140 different words"));
  EXPECT_THAT(error.error().message, HasSubstr("split it into subwords"));
}

TEST_F(DictionaryTest, LineJoinsSubwordsUpToTheEnd) {
  const std::array<std::string_view, 4> words = {"ein@@", "und@@", "zwanzig", "uhr"};
  const Dictionary dictionary{words};
  const auto line = [&](std::vector<int32_t> ids) { return dictionary.Line(ids); };
  EXPECT_EQ(line({4, 5, 6, 7, 2}), "einundzwanzig uhr");
  EXPECT_EQ(line({2, 4}), "");
  EXPECT_EQ(line({0, 6, 1, 7}), "zwanzig uhr");
  EXPECT_EQ(line({7, 3, 7, 2}), "uhr <unk> uhr");
  EXPECT_EQ(line({4, 5}), "einund");
  EXPECT_EQ(line({-1, 8, 2}), "<unk> <unk>");
  EXPECT_EQ(line({}), "");
}

TEST(DictionaryDeathTest, WrongUse) {
  const std::array<std::string_view, 2> twice = {"a", "a"};
  EXPECT_DEATH(Dictionary{twice}, "word 'a'");
  const std::array<std::string_view, 1> special = {"</s>"};
  EXPECT_DEATH(Dictionary{special}, "word '</s>'");
  EXPECT_DEATH((void)DictionaryBuilder().Build({.multiple_of = 0}), "a multiple of 0");
}

}  // namespace
}  // namespace thimble
