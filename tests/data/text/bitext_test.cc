#include "thimble/data/text/bitext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/data/text/text_fixtures.h"

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct ReadPair {
  std::vector<int32_t> source;
  std::vector<int32_t> target;
};

Result<ReadPair> TryRead(const TextDataset& dataset, int64_t index) {
  const PairLength length = dataset.LengthAt(index);
  ReadPair pair{std::vector<int32_t>(length.source, -1), std::vector<int32_t>(length.target, -1)};
  THIMBLE_TRY(dataset.Read(index, pair.source, pair.target));
  return pair;
}

class BitextTest : public ::testing::Test {
 protected:
  BitextTest() { WriteBitext(folder_); }

  TextData Open(int32_t max_tokens = 1024) {
    auto data = OpenBitext(folder_.path(), "", {.max_sentence_tokens = max_tokens});
    EXPECT_TRUE(data.ok()) << data.error().message;
    return std::move(*data);
  }
  std::string OpenError(int32_t max_tokens = 1024) {
    const auto data = OpenBitext(folder_.path(), "", {.max_sentence_tokens = max_tokens});
    if (data.ok()) return "opened";
    EXPECT_EQ(data.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(data.error().message.starts_with(folder_.path())) << data.error().message;
    return data.error().message.substr(folder_.path().size() + 1);
  }
  // The error of reading any pair of the training set.
  static std::string ReadError(const TextDataset& dataset) {
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const auto pair = TryRead(dataset, i);
      if (!pair.ok()) return pair.error().message;
    }
    return "read";
  }
  // Replaces a file's bytes, but not the file, and restores its time of modification.
  void WriteSecretly(const std::string& name, const std::string& content) {
    const auto time = std::filesystem::last_write_time(folder_.File(name));
    folder_.Write(name, content);
    std::filesystem::last_write_time(folder_.File(name), time);
  }

  TestFolder folder_{"bitext"};
};

TEST_F(BitextTest, ReadsPairsAsIndices) {
  const TextData data = Open();
  ASSERT_EQ(data.train->size(), 3);
  const Dictionary& german = data.train->source_dictionary();
  const Dictionary& english = data.train->target_dictionary();
  EXPECT_EQ(data.train->LengthAt(1), (PairLength{5, 4}));
  const auto pair = TryRead(*data.train, 1);
  ASSERT_TRUE(pair.ok());
  EXPECT_THAT(pair->source, ElementsAre(german.Find("zwei"), german.Find("häu@@"),
                                        german.Find("ser"), german.Find("."), 2));
  EXPECT_THAT(pair->target,
              ElementsAre(english.Find("two"), english.Find("houses"), english.Find("."), 2));
  EXPECT_EQ(german.Line(pair->source), "zwei häuser .");
  EXPECT_EQ(*data.train->SourceLine(1), "zwei häuser .");
  EXPECT_EQ(*data.train->TargetLine(2), "a garden");
  EXPECT_EQ(data.source_language, "de");
  EXPECT_EQ(data.target_language, "en");
}

TEST_F(BitextTest, BuildsDictionariesFromTheTrainingText) {
  const TextData data = Open();
  EXPECT_EQ(data.train->source_dictionary().ToText().substr(0, 6), "ein 2\n");
  EXPECT_EQ(data.train->source_dictionary().size() % 8, 0);
  EXPECT_EQ(&data.train->source_dictionary(), &data.test->source_dictionary());
  // "gärten" and "gardens" are only in the validation text.
  const auto pair = TryRead(*data.validation, 1);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->source[1], Dictionary::kUnknown);
  EXPECT_EQ(pair->target[1], Dictionary::kUnknown);
  EXPECT_EQ(*data.validation->TargetLine(1), "two gardens");
}

TEST_F(BitextTest, ReadsDictionariesThatAreThere) {
  folder_.Write("dict.de.txt", "haus 7\nein 3\n");
  folder_.Write("dict.en.txt", "house 2\n");
  const TextData data = Open();
  EXPECT_EQ(data.train->source_dictionary().size(), 6);
  EXPECT_EQ(data.train->target_dictionary().size(), 5);
  const auto pair = TryRead(*data.train, 0);
  ASSERT_TRUE(pair.ok());
  EXPECT_THAT(pair->source, ElementsAre(5, 4, 2));
  EXPECT_THAT(pair->target, ElementsAre(3, 4, 2));
}

TEST_F(BitextTest, DamagedDictionaryNamesTheLine) {
  folder_.Write("dict.de.txt", "haus 7\nein\n");
  folder_.Write("dict.en.txt", "house 2\n");
  EXPECT_THAT(OpenError(), testing::StartsWith("dict.de.txt: line 2: expected a word"));
}

TEST_F(BitextTest, TranslatesTheOtherWay) {
  auto data = OpenBitext(folder_.path(), "en-de", {});
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(*data->train->SourceLine(0), "a house");
  EXPECT_EQ(*data->train->TargetLine(0), "ein haus");
}

TEST_F(BitextTest, EmptyAndLongPairsAreLeftOutOfTrainingAndCounted) {
  folder_.Write("train.de", "a b c\n\na b c d\n  \na\n\n");
  folder_.Write("train.en", "a\na\na\nx\na b c d\na b c d e\n");
  const TextData data = Open(/*max_tokens=*/4);
  ASSERT_EQ(data.train->size(), 1);
  EXPECT_EQ(data.train->LengthAt(0), (PairLength{4, 2}));
  EXPECT_EQ(data.train->omissions(),
            (TextOmissions{.empty_pairs = 3, .long_pairs = 2, .cut_sentences = 0}));
}

TEST_F(BitextTest, NothingIsLeftOutOfTheTestSet) {
  folder_.Write("test.de", "ein haus ein haus\n\nein\n");
  folder_.Write("test.en", "a house\na\na house a house a house\n");
  const TextData data = Open(/*max_tokens=*/4);
  ASSERT_EQ(data.test->size(), 3);
  EXPECT_EQ(data.test->LengthAt(0), (PairLength{4, 3}));
  EXPECT_EQ(data.test->LengthAt(1), (PairLength{1, 2}));
  EXPECT_EQ(data.test->LengthAt(2), (PairLength{2, 4}));
  EXPECT_EQ(data.test->omissions(),
            (TextOmissions{.empty_pairs = 0, .long_pairs = 0, .cut_sentences = 2}));
  const Dictionary& german = data.test->source_dictionary();
  const auto cut = TryRead(*data.test, 0);
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(german.Line(cut->source), "ein haus ein");
  EXPECT_EQ(cut->source.back(), Dictionary::kEnd);
  EXPECT_THAT(TryRead(*data.test, 1)->source, ElementsAre(Dictionary::kEnd));
  EXPECT_EQ(*data.test->TargetLine(2), "a house a house a house");
  EXPECT_EQ(*data.test->SourceLine(1), "");
}

TEST_F(BitextTest, UnequalNumbersOfLines) {
  folder_.Write("train.en", "a\nb\n");
  EXPECT_EQ(OpenError(), "train.de: has 3 lines, but " + folder_.File("train.en") +
                             " has 2; expected a translation in each");
  WriteBitext(folder_);
  folder_.Write("test.de", "a\nb\nc");
  EXPECT_THAT(OpenError(), HasSubstr("test.de: has 3 lines, but"));
}

TEST_F(BitextTest, FilesThatCannotBeRead) {
  folder_.Write("valid.en", "");
  EXPECT_EQ(OpenError(), "valid.en: file is empty, expected lines of text");
  WriteBitext(folder_);
  std::filesystem::remove(folder_.File("test.en"));
  EXPECT_EQ(OpenError(), "test.en: cannot open: No such file or directory");
  std::filesystem::create_directory(folder_.File("test.en"));
  EXPECT_EQ(OpenError(), "test.en: is a folder, expected a file");
}

TEST_F(BitextTest, InvalidUtf8) {
  folder_.Write("train.en", "a\nb \xc3( c\nd\n");
  EXPECT_THAT(OpenError(), testing::StartsWith("train.en: line 2 is not UTF-8"));
}

TEST_F(BitextTest, NoUsablePair) {
  folder_.Write("train.de", "\na b c d e\n");
  folder_.Write("train.en", "a\na\n");
  EXPECT_EQ(OpenError(/*max_tokens=*/4),
            "train.de: no pair of sentences can be used: 1 are empty, 1 have more than 4 tokens");
}

TEST_F(BitextTest, ALineOfAHundredThousandTokens) {
  std::string line;
  for (int i = 0; i < 100'000; ++i) line += "ein ";
  folder_.Write("train.de", "ein haus\n" + line + "\nein haus\n");
  folder_.Write("test.de", line + "\n" + std::string(100'000, 'x') + "\n");
  const TextData data = Open();
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.train->omissions().long_pairs, 1);
  EXPECT_EQ(*data.train->SourceLine(1), "ein haus");
  EXPECT_EQ(data.test->LengthAt(0).source, 1024);
  EXPECT_EQ(data.test->omissions().cut_sentences, 1);
  const auto pair = TryRead(*data.test, 0);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->source[1022], data.test->source_dictionary().Find("ein"));
  EXPECT_EQ(pair->source[1023], Dictionary::kEnd);
  // A word beyond all bounds counts as several unknown ones.
  EXPECT_EQ(TryRead(*data.test, 1)->source[0], Dictionary::kUnknown);
}

TEST_F(BitextTest, TheLongestSentencesThatFitInto16Bits) {
  std::string line;
  for (int i = 0; i < 65'534; ++i) line += "ein ";
  folder_.Write("train.de", line + "\n" + line + "haus\nein\n");
  const TextData data = Open(/*max_tokens=*/65'535);
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.train->LengthAt(0).source, 65'535);
  EXPECT_EQ(data.train->omissions().long_pairs, 1);
  EXPECT_TRUE(TryRead(*data.train, 0).ok());
}

TEST_F(BitextTest, FileThatChangesIsAnErrorOfRead) {
  const TextData data = Open();
  EXPECT_EQ(ReadError(*data.train), "read");
  const auto time = std::filesystem::last_write_time(folder_.File("train.en"));
  std::filesystem::last_write_time(folder_.File("train.en"), time + std::chrono::seconds(1));
  EXPECT_EQ(ReadError(*data.train),
            folder_.File("train.en") + ": was written to after it was opened");
  EXPECT_EQ(data.train->TargetLine(0).error().message,
            folder_.File("train.en") + ": was written to after it was opened");
  std::filesystem::resize_file(folder_.File("train.en"), 5);
  EXPECT_THAT(ReadError(*data.train), HasSubstr("it has 5 bytes, had 33"));
}

// Even if size and time are the same, a line must begin where it was and have as many words.
TEST_F(BitextTest, LinesThatChangeSecretlyAreNoticed) {
  folder_.Write("train.de", "ein haus\nzwei\nein\n");
  const TextData data = Open();
  WriteSecretly("train.de", "einshaus\nzwei\nein\n");
  EXPECT_EQ(ReadError(*data.train),
            folder_.File("train.de") +
                ": has changed since it was opened: the line at offset 0 is another one");
  WriteSecretly("train.de", "ein haus\nz ei\nein\n");
  EXPECT_THAT(ReadError(*data.train), HasSubstr("the line at offset 9 is another one"));
  WriteSecretly("train.de", "ein haus zwei\nein\n");
  EXPECT_THAT(ReadError(*data.train), HasSubstr("the line at offset 0 is another one"));
  WriteSecretly("train.de", "ein haus\nzwe i in\n");
  EXPECT_THAT(ReadError(*data.train), HasSubstr("the line at offset 9 is another one"));
  WriteSecretly("train.de", "ein hau\nzzwei\nein\n");
  EXPECT_THAT(ReadError(*data.train), HasSubstr("the line at offset 9 is another one"));
}

TEST_F(BitextTest, IdentityFollowsTheContent) {
  const std::string identity = Open().identity;
  EXPECT_EQ(Open().identity, identity);
  folder_.Write("test.en", "two gar@@ den\na houze\n");
  const std::string other_text = Open().identity;
  EXPECT_NE(other_text, identity);
  folder_.Write("dict.de.txt", "haus 7\n");
  folder_.Write("dict.en.txt", "house 2\n");
  EXPECT_NE(Open().identity, other_text);
}

TEST_F(BitextTest, LongTextIsReadAtAnyPlace) {
  std::string german;
  std::string english;
  for (int i = 0; i < 5000; ++i) {
    const int words = i * 37 % 60;
    for (int word = 0; word < words; ++word) german += "w" + std::to_string(word % 90) + " ";
    english += "number " + std::to_string(i) + "\n";
    german += "ende\n";
  }
  folder_.Write("train.de", german);
  folder_.Write("train.en", english);
  const TextData data = Open();
  ASSERT_EQ(data.train->size(), 5000);
  for (int64_t i = 4999; i >= 0; i -= 7) {
    ASSERT_EQ(data.train->LengthAt(i), (PairLength{static_cast<int32_t>(i * 37 % 60 + 2), 3}));
    const auto pair = TryRead(*data.train, i);
    ASSERT_TRUE(pair.ok());
    ASSERT_EQ(data.train->target_dictionary().Line(pair->target), "number " + std::to_string(i));
  }
}

TEST(BitextDeathTest, WrongUse) {
  const TestFolder folder("bitext_wrong");
  WriteBitext(folder);
  const auto data = OpenBitext(folder.path(), "", {});
  ASSERT_TRUE(data.ok());
  std::vector<int32_t> ids(3);
  EXPECT_DEATH((void)data->train->LengthAt(3), "pair 3 of 3");
  EXPECT_DEATH((void)data->train->Read(1, ids, ids).ok(), "space for 3 and 3 tokens");
  EXPECT_DEATH((void)OpenBitext(folder.path(), "", {.max_sentence_tokens = 70'000}).ok(),
               "at most 70000 tokens");
}

TEST_F(BitextTest, MergesBelongToTheData) {
  const TextData without = Open();
  EXPECT_EQ(without.merges, nullptr);
  folder_.Write("bpe.codes", "#version: 0.2\na b\n");
  const TextData with = Open();
  ASSERT_NE(with.merges, nullptr);
  EXPECT_EQ(with.merges->ToText(), "#version: 0.2\na b\n");
  EXPECT_NE(with.identity, without.identity);
  folder_.Write("bpe.codes", "#version: 0.2\na c\n");
  EXPECT_NE(Open().identity, with.identity);
  folder_.Write("bpe.codes", "a b\n");
  EXPECT_THAT(OpenError(), HasSubstr("bpe.codes: line 1: expected \"#version: 0.2\""));
}

}  // namespace
}  // namespace thimble
