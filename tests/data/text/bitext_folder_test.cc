#include "thimble/data/text/bitext_folder.h"

#include <gtest/gtest.h>

#include "tests/data/text/text_fixtures.h"

namespace thimble {
namespace {

class BitextFolderTest : public ::testing::Test {
 protected:
  BitextFolderTest() { WriteBitext(folder_); }

  std::string Error(const std::string& languages = "") {
    const auto found = FindBitext(folder_.path(), languages);
    if (found.ok()) return "found";
    EXPECT_EQ(found.error().kind, ErrorKind::kBadInput);
    return found.error().message;
  }

  TestFolder folder_{"bitext_folder"};
};

TEST_F(BitextFolderTest, FindsTheOnlyPair) {
  const auto found = FindBitext(folder_.path(), "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source_language, "de");
  EXPECT_EQ(found->target_language, "en");
  EXPECT_TRUE(found->has_validation);
  EXPECT_EQ(found->SourcePath("train"), folder_.File("train.de"));
  EXPECT_EQ(found->TargetPath("test"), folder_.File("test.en"));
  EXPECT_EQ(found->source_dictionary, "");
}

TEST_F(BitextFolderTest, NamedLanguages) {
  folder_.Write("train.fr", "une maison\n");
  EXPECT_EQ(Error(),
            folder_.path() +
                ": expected training text in two languages (train.de and train.en), found 3: "
                "\"de\" \"en\" \"fr\"; name two as in bitext:DIR,de-en");
  const auto found = FindBitext(folder_.path(), "en-de");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source_language, "en");
  EXPECT_EQ(found->target_language, "de");
}

TEST_F(BitextFolderTest, NoPairOfLanguages) {
  std::filesystem::remove(folder_.File("train.en"));
  EXPECT_NE(Error().find("found 1: \"de\";"), std::string::npos);
  std::filesystem::remove(folder_.File("train.de"));
  EXPECT_NE(Error().find("found 0;"), std::string::npos);
}

TEST_F(BitextFolderTest, MalformedLanguages) {
  for (const char* languages : {"de", "de-", "-en", "de-de", "a-b-c", "../de-en", "-"}) {
    EXPECT_NE(Error(languages).find("expected two, source first, as in de-en"), std::string::npos)
        << languages;
  }
}

TEST_F(BitextFolderTest, ValidationIsOptionalButNotHalf) {
  std::filesystem::remove(folder_.File("valid.de"));
  EXPECT_EQ(Error(), folder_.File("valid.de") + ": is missing, but " + folder_.File("valid.en") +
                         " is there");
  std::filesystem::remove(folder_.File("valid.en"));
  EXPECT_FALSE(FindBitext(folder_.path(), "")->has_validation);
}

TEST_F(BitextFolderTest, DictionariesAreOptionalButNotOneOfThem) {
  folder_.Write("dict.en.txt", "a 1\n");
  EXPECT_EQ(Error(), folder_.File("dict.de.txt") + ": is missing, but " +
                         folder_.File("dict.en.txt") + " is there");
  folder_.Write("dict.de.txt", "ein 1\n");
  const auto found = FindBitext(folder_.path(), "");
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->source_dictionary, folder_.File("dict.de.txt"));
  EXPECT_EQ(found->target_dictionary, folder_.File("dict.en.txt"));
}

TEST_F(BitextFolderTest, MergesAreOptional) {
  EXPECT_EQ(FindBitext(folder_.path(), "")->merges, "");
  folder_.Write("bpe.codes", "");
  EXPECT_EQ(FindBitext(folder_.path(), "")->merges, folder_.File("bpe.codes"));
}

// A program that was killed may have left them.
TEST_F(BitextFolderTest, FilesThatAreBeingWrittenAreNoText) {
  folder_.Write("train.fr.tmp", "une maison\n");
  EXPECT_EQ(Error(), "found");
  for (const char* name : {"train.de", "train.en"}) {
    std::filesystem::rename(folder_.File(name), folder_.File(name) + ".tmp");
  }
  EXPECT_NE(Error().find("found 0;"), std::string::npos);
}

TEST(BitextArgumentTest, LanguagesFollowTheLastComma) {
  const auto expect = [](const char* argument, const char* folder, const char* languages) {
    const BitextArgument split = SplitBitextArgument(argument);
    EXPECT_EQ(split.folder, folder);
    EXPECT_EQ(split.languages, languages);
  };
  expect("data/de", "data/de", "");
  expect("data,de-en", "data", "de-en");
  expect("a,b,de-en", "a,b", "de-en");
  expect("data,", "data", "");
  expect("", "", "");
}

TEST_F(BitextFolderTest, MissingFolder) {
  for (const std::string& path : {folder_.File("none"), folder_.File("train.de")}) {
    const auto found = FindBitext(path, "");
    ASSERT_FALSE(found.ok());
    EXPECT_TRUE(found.error().message.starts_with(path + ": cannot read the folder: "))
        << found.error().message;
    EXPECT_NE(found.error().message.find("train.de, train.en"), std::string::npos);
  }
}

}  // namespace
}  // namespace thimble
