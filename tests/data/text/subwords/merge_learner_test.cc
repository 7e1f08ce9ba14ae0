#include "thimble/data/text/subwords/merge_learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/test_paths.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/json.h"
#include "thimble/base/philox.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

using testing::HasSubstr;

WordCounts CountsOf(std::string_view text) {
  WordCounts words;
  for (auto word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
    EXPECT_TRUE(words.Count(word).ok());
  }
  return words;
}

// The merges without the version, or the error.
std::string Learned(std::string_view text, int32_t most) {
  const auto merges = LearnMerges(CountsOf(text), most);
  if (!merges.ok()) return merges.error().message;
  return merges->ToText().substr(std::string_view("#version: 0.2\n").size());
}

// The definition: all pairs are counted again for each merge.
std::string LearnedByDefinition(std::string_view text, int most) {
  std::vector<std::vector<std::string>> words;
  for (auto word = TakeWord(text); !word.empty(); word = TakeWord(text)) {
    words.emplace_back();
    for (const char c : word) words.back().emplace_back(1, c);
    words.back().back() += kWordEndMark;
  }
  std::string merges;
  for (int i = 0; i < most; ++i) {
    std::map<std::pair<std::string, std::string>, int> counts;
    for (const auto& word : words) {
      for (size_t at = 0; at + 1 < word.size(); ++at) ++counts[{word[at], word[at + 1]}];
    }
    const auto best =
        std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
          return std::pair(a.second, a.first) < std::pair(b.second, b.first);
        });
    if (best == counts.end() || best->second < 2) break;
    const auto& [first, second] = best->first;
    merges += first + " " + second + "\n";
    for (auto& word : words) {
      for (size_t at = 0; at + 1 < word.size(); ++at) {
        if (word[at] != first || word[at + 1] != second) continue;
        word[at] += second;
        word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      }
    }
  }
  return merges;
}

TEST(MergeLearnerTest, MostFrequentPairsFirst) {
  EXPECT_EQ(Learned("abc abc xbc", 1), "b c</w>\n");
  EXPECT_EQ(Learned("abc abc xbc", 2), "b c</w>\na bc</w>\n");
}

TEST(MergeLearnerTest, EndsWhenNoPairOccursTwice) {
  EXPECT_EQ(Learned("abc abc xbc", 100), "b c</w>\na bc</w>\n");
}

TEST(MergeLearnerTest, OfEqualPairsTheLargestByBytes) {
  EXPECT_EQ(Learned("ab ab cd cd", 9), "c d</w>\na b</w>\n");
  EXPECT_EQ(Learned("ab ab aä aä az az", 9), "a ä</w>\na z</w>\na b</w>\n");
}

TEST(MergeLearnerTest, EqualNeighbours) {
  EXPECT_EQ(Learned("aaaaa", 9), "a a\n");
  EXPECT_EQ(Learned("aaaaax aaaaax", 9), LearnedByDefinition("aaaaax aaaaax", 9));
}

TEST(MergeLearnerTest, WordsThatLookLikeMarksAreLeftOut) {
  EXPECT_EQ(Learned("a@@ a@@ a@@ b</w> b</w> xy xy", 9), "x y</w>\n");
  EXPECT_THAT(Learned("@@ @@ a</w> a</w>", 9), HasSubstr("no two characters occur together twice"));
}

TEST(MergeLearnerTest, NothingToLearn) {
  for (const char* text : {"", "a b c a b c", "ab cd", "ä"}) {
    EXPECT_THAT(Learned(text, 9), HasSubstr("no two characters occur together twice")) << text;
  }
}

TEST(MergeLearnerTest, RandomTextsByDefinition) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const RandomSource source(seed, RandomPurpose::kTest);
    std::string text;
    for (uint32_t i = 0; i < 300; ++i) {
      text += "aab c"[UniformBelow(source.Words(0, i, 0)[0], 5)];
    }
    EXPECT_EQ(Learned(text, 50), LearnedByDefinition(text, 50)) << text;
  }
}

TEST(MergeLearnerTest, AgreesWithSubwordNmt) {
  const auto text = ReadWholeFile(GoldenFolder() + "/bpe.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const Json golden = ParseJson(*text).value();
  std::string lines;
  for (const Json& line : golden["text"]) lines += line.text() + "\n";
  const auto merges = LearnMerges(CountsOf(lines), 120);
  ASSERT_TRUE(merges.ok());
  EXPECT_EQ(merges->ToText(), golden["codes"].text());
}

TEST(MergeLearnerDeathTest, WrongUse) {
  EXPECT_DEATH((void)LearnMerges(WordCounts(), 0), "0 merges");
  EXPECT_DEATH((void)LearnMerges(WordCounts(), kMaxMerges + 1), "262145 merges");
}

}  // namespace
}  // namespace thimble
