#include "thimble/data/text/text_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text/text_fixtures.h"

namespace thimble {
namespace {

std::string TextDataError(const std::string& spec, const TextDataOptions& options = {}) {
  const auto data = OpenTextData(spec, options);
  if (data.ok()) return "opened";
  EXPECT_EQ(data.error().kind, ErrorKind::kBadInput);
  return data.error().message;
}

TEST(TextDatasetTest, OpensNumbers) {
  const auto data = OpenTextData("numbers:300,20", {});
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(data->name, "numbers");
  EXPECT_EQ(data->train->size(), 300);
  EXPECT_EQ(data->validation->size(), 20);
  EXPECT_EQ(data->test->size(), 20);
  EXPECT_EQ(data->source_language, "de");
  EXPECT_EQ(data->target_language, "en");
  EXPECT_THAT(data->identity,
              testing::StartsWith("numbers de-en, 300 training and 20 test pairs, "));
  EXPECT_EQ(OpenTextData("numbers", {})->train->size(), 50'000);
  EXPECT_EQ(OpenTextData("numbers:7", {})->test->size(), 2'000);
}

TEST(TextDatasetTest, OpensBitext) {
  const TestFolder folder("text,dataset");  // a comma in its name
  WriteBitext(folder);
  const auto data = OpenTextData("bitext:" + folder.path() + ",de-en", {});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->name, "bitext");
  EXPECT_EQ(data->validation->size(), 2);
  EXPECT_THAT(
      data->identity,
      testing::StartsWith("bitext de-en, 3 training and 2 test pairs, 16 and 16 words, crc64:"));
}

TEST(TextDatasetTest, UnknownSpecifications) {
  for (const char* spec : {"", ":", "shapes", "numbers:", "bitext", "bitext:", "number:5"}) {
    EXPECT_THAT(TextDataError(spec),
                testing::HasSubstr("expected numbers[:TRAIN[,TEST]]|bitext:DIR[,SOURCE-TARGET]"))
        << spec;
  }
  EXPECT_THAT(TextDataError("number"), testing::EndsWith("did you mean numbers?"));
}

TEST(TextDatasetTest, ImpossibleSizes) {
  for (const char* size : {"0", "-1", "x", "", "5x", "2147483648", "99999999999999999999"}) {
    EXPECT_THAT(TextDataError(std::string("numbers:5,") + size),
                testing::HasSubstr("is not a number of pairs, expected 1 to 2147483647"));
  }
  EXPECT_THAT(TextDataError("numbers:5", {.max_sentence_tokens = 1}),
              testing::HasSubstr("expected 2 to 65535"));
  EXPECT_THAT(TextDataError("numbers:5", {.max_sentence_tokens = 65536}),
              testing::HasSubstr("expected 2 to 65535"));
}

TEST(TextDatasetTest, MissingFolder) {
  EXPECT_THAT(TextDataError("bitext:/nowhere/at/all"),
              testing::StartsWith("/nowhere/at/all: cannot read the folder"));
  EXPECT_THAT(TextDataError("bitext:/nowhere,de"), testing::HasSubstr("languages \"de\""));
}

TEST(TextDatasetTest, KnowsItsNames) {
  EXPECT_TRUE(IsTextData("numbers"));
  EXPECT_TRUE(IsTextData("bitext:DIR"));
  EXPECT_FALSE(IsTextData("shapes"));
  EXPECT_FALSE(IsTextData(""));
}

}  // namespace
}  // namespace thimble
