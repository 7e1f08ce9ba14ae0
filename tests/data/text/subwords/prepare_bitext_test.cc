#include "thimble/data/text/subwords/prepare_bitext.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/fake_dataset.h"
#include "tests/train/file_fixture.h"
#include "thimble/base/file_reader.h"
#include "thimble/data/text/bitext.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

using testing::HasSubstr;

class PrepareBitextTest : public ::testing::Test {
 protected:
  PrepareBitextTest() {
    options_.from = folder_.File("raw");
    options_.to = folder_.File("split");
    options_.merges = 4;
    std::filesystem::create_directory(options_.from);
    WriteRaw("train.de", "haus haus\n\nhäuser  haus\n");
    WriteRaw("train.en", "house house\n\nhouses house");
    WriteRaw("valid.de", "maus\n");
    WriteRaw("valid.en", "mouse\n");
    WriteRaw("test.de", "hausmaus\t.\n\n");
    WriteRaw("test.en", "house mouse .\n\n");
  }

  void WriteRaw(const std::string& name, const std::string& content) {
    folder_.Write("raw/" + name, content);
  }
  std::string Split(const std::string& name) const {
    const auto content = ReadWholeFile(options_.to + "/" + name, 100'000);
    return content.ok() ? *content : content.error().message;
  }
  std::string Refusal() const {
    const auto made = PrepareBitext(options_);
    if (made.ok()) return "prepared";
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
    return made.error().message;
  }

  TestFolder folder_{"prepare_bitext"};
  PreparationOptions options_;
};

TEST_F(PrepareBitextTest, WritesAllFilesSplit) {
  const auto made = PrepareBitext(options_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->source_language, "de");
  EXPECT_EQ(made->target_language, "en");
  EXPECT_EQ(made->merges, 4);
  // As subword-nmt has them.
  EXPECT_EQ(Split("bpe.codes"), "#version: 0.2\nu s\no us\nh ous\nu s</w>\n");
  EXPECT_EQ(Split("train.de"), "h@@ a@@ us h@@ a@@ us\n\nh@@ ä@@ us@@ e@@ r h@@ a@@ us\n");
  EXPECT_EQ(Split("train.en"), "hous@@ e hous@@ e\n\nhous@@ e@@ s hous@@ e\n");
  EXPECT_EQ(Split("valid.de"), "m@@ a@@ us\n");
  EXPECT_EQ(Split("test.de"), "h@@ a@@ us@@ m@@ a@@ us .\n\n");
  EXPECT_EQ(Split("test.en"), "hous@@ e m@@ ous@@ e .\n\n");
  EXPECT_EQ(Split("dict.en.txt"), "hous@@ 4\ne 3\ne@@ 1\ns 1\n");
  EXPECT_EQ(Split("dict.de.txt"),
            "h@@ 4\na@@ 3\nus 3\ne@@ 1\nr 1\nus@@ 1\nä@@ 1\nmadeupword0000 0\nmadeupword0001 0\n"
            "madeupword0002 0\nmadeupword0003 0\nmadeupword0004 0\n");
}

TEST_F(PrepareBitextTest, IsBitextWithMerges) {
  ASSERT_TRUE(PrepareBitext(options_).ok());
  const TextData data = OpenBitext(options_.to, "", {}).value();
  EXPECT_EQ(data.merges->ToText(), Split("bpe.codes"));
  EXPECT_EQ(data.test->SourceLine(0).value(), "hausmaus .");
  EXPECT_EQ(data.train->size(), 2);
  EXPECT_EQ(data.train->target_dictionary().ToText(), Split("dict.en.txt"));
}

TEST_F(PrepareBitextTest, NamedLanguagesAndNoValidation) {
  WriteRaw("train.fr", "maison\n");
  EXPECT_THAT(Refusal(), HasSubstr("found 3"));
  options_.languages = "en-de";
  std::filesystem::remove(options_.from + "/valid.de");
  EXPECT_THAT(Refusal(), HasSubstr("valid.de: is missing"));
  std::filesystem::remove(options_.from + "/valid.en");
  const auto made = PrepareBitext(options_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->source_language, "en");
  EXPECT_FALSE(std::filesystem::exists(options_.to + "/valid.en"));
  EXPECT_FALSE(std::filesystem::exists(options_.to + "/train.fr"));
}

TEST_F(PrepareBitextTest, AnotherPreparationIsNotReplaced) {
  ASSERT_TRUE(PrepareBitext(options_).ok());
  ASSERT_TRUE(PrepareBitext(options_).ok());  // the same again
  const std::string before = Split("train.de");
  options_.merges = 3;
  EXPECT_EQ(Refusal(), options_.to +
                           "/bpe.codes: there is already a file with other content; "
                           "--overwrite replaces it");
  EXPECT_EQ(Split("train.de"), before);
  options_.overwrite = true;
  ASSERT_TRUE(PrepareBitext(options_).ok());
  EXPECT_NE(Split("train.de"), before);
}

TEST_F(PrepareBitextTest, OldValidationIsNotMixedIn) {
  ASSERT_TRUE(PrepareBitext(options_).ok());
  for (const char* name : {"/valid.de", "/valid.en"}) std::filesystem::remove(options_.from + name);
  EXPECT_THAT(Refusal(), HasSubstr("valid.de: does not belong to this text"));
  options_.overwrite = true;
  ASSERT_TRUE(PrepareBitext(options_).ok());
  EXPECT_EQ(OpenBitext(options_.to, "", {})->validation, nullptr);
}

TEST_F(PrepareBitextTest, TextIsNotReplacedByItsSplitText) {
  options_.overwrite = true;
  options_.to = options_.from + "/../raw/.";
  EXPECT_THAT(Refusal(), HasSubstr("is the folder of the text itself"));
}

TEST_F(PrepareBitextTest, TextThatIsSplitAlready) {
  ASSERT_TRUE(PrepareBitext(options_).ok());
  PreparationOptions again = options_;
  again.from = options_.to;
  again.to = folder_.File("again");
  const auto made = PrepareBitext(again);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(
      made.error().message,
      options_.to +
          "/test.de: line 1: \"h@@\" has the mark of a subword, as have 5 of 7 words; expected "
          "text that is not split yet");
  EXPECT_FALSE(std::filesystem::exists(again.to));
}

// Such words occur, if hardly ever.
TEST_F(PrepareBitextTest, WordsThatEndInTheMarkCanBeJoinedAgain) {
  WriteRaw("train.de", "haus @@\n@@\nhaus haus@@\n");
  std::string many = "x@@ y";
  for (int i = 0; i < 1000; ++i) many += " haus";
  WriteRaw("test.de", many + "\n\n");
  const auto made = PrepareBitext(options_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const TextData data = OpenBitext(options_.to, "", {}).value();
  EXPECT_EQ(data.train->SourceLine(0).value(), "haus @@");
  EXPECT_EQ(data.train->SourceLine(1).value(), "haus haus@@");
  EXPECT_EQ(data.test->SourceLine(0).value(), many);
}

TEST_F(PrepareBitextTest, WrongText) {
  WriteRaw("test.en", "house\n");
  EXPECT_THAT(Refusal(), HasSubstr("test.de: has 2 lines, but"));
  WriteRaw("test.en", "house\n\xff\n");
  EXPECT_THAT(Refusal(), HasSubstr("test.en: line 2 is not UTF-8"));
  WriteRaw("test.en", "");
  EXPECT_THAT(Refusal(), HasSubstr("test.en: file is empty"));
  std::filesystem::remove(options_.from + "/test.en");
  EXPECT_THAT(Refusal(), HasSubstr("test.en: cannot open"));
  EXPECT_FALSE(std::filesystem::exists(options_.to));
  options_.from = folder_.File("none");
  EXPECT_THAT(Refusal(), HasSubstr("none: cannot read the folder"));
}

TEST_F(PrepareBitextTest, NothingToLearn) {
  WriteRaw("train.de", "a b c\n");
  WriteRaw("train.en", "\n");
  EXPECT_THAT(Refusal(), HasSubstr("train.de: no two characters occur together twice"));
}

TEST_F(PrepareBitextTest, VeryLongWords) {
  const std::string word(100'000, 'a');
  WriteRaw("train.de", word + "\n" + word + "b\nhaus\n");
  options_.merges = 100;
  const auto made = PrepareBitext(options_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const TextData data = OpenBitext(options_.to, "", {}).value();
  EXPECT_EQ(data.train->SourceLine(0).value().size(), word.size() + 100);  // as several words
}

TEST_F(PrepareBitextTest, FailedWritesLeaveNothingThatLooksComplete) {
  std::filesystem::create_directories(options_.to + "/dict.en.txt");
  const auto made = PrepareBitext(options_);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("dict.en.txt"));
  EXPECT_FALSE(std::filesystem::exists(options_.to + "/train.de"));
  EXPECT_FALSE(std::filesystem::exists(options_.to + "/train.de.tmp"));
}

TEST_F(PrepareBitextTest, FullDisk) {
  {
    const ScopedFileSizeLimit limit(10);
    const auto made = PrepareBitext(options_);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(made.error().message, HasSubstr("bpe.codes: cannot write"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(options_.to));
  EXPECT_TRUE(PrepareBitext(options_).ok());
}

}  // namespace
}  // namespace thimble
