#include "thimble/data/text/subwords/word_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fake_dataset.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

TEST(WordCountsTest, CountsTheWordsOfAllFiles) {
  const TestFolder folder("word_counts");
  folder.Write("de", "ein haus\n\nein <pad> garten\n");
  folder.Write("en", "in\tein\n");
  WordCounts words;
  Crc64 checksum;
  for (const char* name : {"de", "en"}) {
    const TextFile file = OpenTextFile(folder.File(name), checksum).value();
    ASSERT_TRUE(words.CountFile(file).ok());
  }
  ASSERT_EQ(words.size(), 5);
  EXPECT_EQ(words.word(0), "ein");
  EXPECT_EQ(words.count(0), 3);
  EXPECT_EQ(words.word(4), "in");
  EXPECT_EQ(words.count(4), 1);
  EXPECT_EQ(words.bytes(), 3 + 4 + 5 + 6 + 2);
}

TEST(WordCountsTest, TooManyBytes) {
  WordCounts words;
  std::string word(kMaxWordBytes, 'x');
  const auto most = static_cast<int32_t>(kMaxCountedBytes / kMaxWordBytes);
  for (int32_t i = 0; i < most; ++i) {
    word.replace(0, 7, std::to_string(1'000'000 + i));
    ASSERT_TRUE(words.Count(word).ok());
  }
  word.replace(0, 7, "another");
  const auto counted = words.Count(word);
  ASSERT_FALSE(counted.ok());
  EXPECT_EQ(counted.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(counted.error().message, testing::HasSubstr("more than 33554 different words"));
}

TEST(WordCountsTest, FileThatHasChanged) {
  const TestFolder folder("word_counts");
  folder.Write("de", "ein haus\n");
  Crc64 checksum;
  const TextFile file = OpenTextFile(folder.File("de"), checksum).value();
  std::filesystem::resize_file(folder.File("de"), 2);
  const auto counted = WordCounts().CountFile(file);
  ASSERT_FALSE(counted.ok());
  EXPECT_THAT(counted.error().message, testing::HasSubstr(folder.File("de")));
}

}  // namespace
}  // namespace thimble
