#include "thimble/base/sealed_text.h"

#include <gtest/gtest.h>

#include "tests/train/file_fixture.h"
#include "thimble/base/json.h"

namespace thimble {
namespace {

// Flips each bit in turn and expects an error, or that only the checksum itself became unreadable.
void ExpectEveryBitCounts(const std::string& sealed) {
  for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::string damaged = sealed;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    if (!CheckSeal(damaged).ok()) continue;
    EXPECT_EQ(damaged.find("crc64:"), std::string::npos) << bit << "\n" << damaged;
  }
}

TEST(SealedText, TomlGetsALastLine) {
  const std::string sealed = SealToml("a = 1\nb = \"x\"\n");
  EXPECT_EQ(sealed.find("a = 1\nb = \"x\"\n# checksum crc64:"), 0U) << sealed;
  EXPECT_TRUE(CheckSeal(sealed).ok());
  EXPECT_EQ(WithoutSeal(sealed), "a = 1\nb = \"x\"\n");
  ExpectEveryBitCounts(sealed);
}

TEST(SealedText, SealingTwiceIsSealingOnce) {
  const std::string sealed = SealToml("a = 1");
  EXPECT_EQ(SealToml(sealed), sealed);
  EXPECT_EQ(WithoutSeal(sealed), "a = 1\n");
  EXPECT_EQ(WithoutSeal("a = 1\n"), "a = 1\n");
  EXPECT_EQ(WithoutSeal(""), "");
}

TEST(SealedText, JsonGetsALastMember) {
  for (const char* text : {"{\"a\": [1, {}]}\n", "{\n \"a\": [1, {}]\n}\n", "{\"a\":[1,{}]}"}) {
    const std::string sealed = SealJson(text);
    EXPECT_TRUE(CheckSeal(sealed).ok()) << sealed;
    auto json = ParseJson(sealed).value();
    EXPECT_EQ(json["checksum"].get<std::string>().find("crc64:"), 0U);
    json.erase("checksum");
    EXPECT_EQ(json, ParseJson(text).value());
    ExpectEveryBitCounts(sealed);
  }
}

TEST(SealedText, WithoutASealThereIsNothingToCheck) {
  EXPECT_TRUE(CheckSeal("").ok());
  EXPECT_TRUE(CheckSeal("a = 1\n").ok());
  EXPECT_TRUE(CheckSeal("too short: crc64:12").ok());
}

TEST(SealedText, TheLastSealCounts) {
  EXPECT_TRUE(CheckSeal(SealToml("# crc64:0123456789abcdef of another file\n")).ok());
}

TEST(SealedText, SaysWhatDiffers) {
  EXPECT_EQ(CheckSeal("x crc64:0123456789abcdef")
                .error()
                .message.find("is damaged or was edited: its checksum is crc64:"),
            0U);
}

TEST(SealedText, TheMessageIsOneLineWhateverIsDamaged) {
  const std::string message = CheckSeal("x crc64:01234\n6789\xff abcdef").error().message;
  EXPECT_NE(message.find("it records \"crc64:01234\\n6789"), std::string::npos) << message;
  EXPECT_EQ(message.find_first_of("\n\xff"), std::string::npos) << message;
}

TEST(SealedTextDeathTest, OnlyObjectsCanBeSealed) {
  EXPECT_DEATH(SealJson("[1]\n"), "not the text of a JSON object");
}

using SealedFile = FileFixture;

TEST_F(SealedFile, ErrorsNameTheFile) {
  Put(path_, SealToml("a = 1\n"));
  EXPECT_EQ(*ReadSealedFile(path_, 1000), Content(path_));
  Put(path_, SealToml("a = 1\n").replace(4, 1, "2"));
  const auto damaged = ReadSealedFile(path_, 1000);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(damaged.error().message.find(path_ + ": is damaged or was edited"), 0U);
  EXPECT_FALSE(ReadSealedFile(path_, 3).ok());
}

}  // namespace
}  // namespace thimble
