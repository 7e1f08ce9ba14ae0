#include "thimble/data/text/word_table.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

TEST(WordTableTest, NumbersWordsInTheOrderOfTheirFirstUse) {
  WordTable table;
  EXPECT_EQ(table.Find("a"), -1);
  EXPECT_EQ(table.FindOrAdd("a"), 0);
  EXPECT_EQ(table.FindOrAdd("b"), 1);
  EXPECT_EQ(table.FindOrAdd("a"), 0);
  EXPECT_EQ(table.FindOrAdd(""), 2);
  EXPECT_EQ(table.Find("b"), 1);
  EXPECT_EQ(table.Find(""), 2);
  EXPECT_EQ(table.Find("ab"), -1);
  EXPECT_EQ(table.size(), 3);
  EXPECT_EQ(table.bytes(), 2);
  EXPECT_EQ(table.word(1), "b");
  EXPECT_EQ(table.word(2), "");
}

TEST(WordTableTest, ManyWords) {
  WordTable table;
  constexpr int kWords = 20'000;
  for (int i = 0; i < kWords; ++i) ASSERT_EQ(table.FindOrAdd(std::to_string(i * 7919)), i);
  for (int i = 0; i < kWords; ++i) {
    ASSERT_EQ(table.Find(std::to_string(i * 7919)), i);
    ASSERT_EQ(table.word(i), std::to_string(i * 7919));
    ASSERT_EQ(table.Find(std::to_string(i * 7919) + "x"), -1);
  }
}

}  // namespace
}  // namespace thimble
