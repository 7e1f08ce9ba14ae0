#include "thimble/data/text/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

class TextFileTest : public ::testing::Test {
 protected:
  // The number of lines, or the error without the path.
  std::string Open(const std::string& content) {
    folder_.Write("file", content);
    Crc64 checksum;
    const auto file = OpenTextFile(folder_.File("file"), checksum);
    if (file.ok()) {
      Crc64 expected;
      expected.Append(content);
      EXPECT_EQ(checksum.value(), expected.value());
      return std::to_string(file->lines);
    }
    EXPECT_EQ(file.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(file.error().message.starts_with(folder_.File("file") + ": "));
    return file.error().message.substr(folder_.File("file").size() + 2);
  }

  TestFolder folder_{"text_file"};
};

TEST_F(TextFileTest, CountsLines) {
  EXPECT_EQ(Open("a\nb\n"), "2");
  EXPECT_EQ(Open("a\nb"), "2");
  EXPECT_EQ(Open("\n"), "1");
  EXPECT_EQ(Open("a"), "1");
  EXPECT_EQ(Open("a\n\n\nb\n"), "4");
}

TEST_F(TextFileTest, CountsLinesOfManyChunks) {
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += "grüße 😀 €\n";
  EXPECT_EQ(Open(content), "50000");
  EXPECT_EQ(Open("x" + content), "50000");
  EXPECT_EQ(Open("xy" + content + "z"), "50001");
}

TEST_F(TextFileTest, EmptyFile) { EXPECT_EQ(Open(""), "file is empty, expected lines of text"); }

TEST_F(TextFileTest, InvalidUtf8NamesTheLine) {
  EXPECT_EQ(Open("a\nb\xff\nc\n"),
            "line 2 is not UTF-8 (to remove the bytes that are not: iconv -c -f utf-8 -t utf-8)");
  EXPECT_TRUE(Open("\xc3\n").starts_with("line 1 is not"));
  EXPECT_TRUE(Open("ok\nü\xc3").starts_with("line 2 is not"));
  EXPECT_TRUE(Open("a\n\xed\xa0\x80\n").starts_with("line 2 is not"));
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += "grüße 😀 €\n";
  EXPECT_TRUE(Open(content + "\x80").starts_with("line 50001 is not"));
  EXPECT_TRUE(Open(content + "😀\xf0\x9f\x98\n" + content).starts_with("line 50001 is not"));
}

TEST_F(TextFileTest, TooLargeFile) {
  folder_.Write("file", "a");
  std::filesystem::resize_file(folder_.File("file"), uintmax_t{1} << 32);  // sparse
  Crc64 checksum;
  const auto file = OpenTextFile(folder_.File("file"), checksum);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message,
            folder_.File("file") + ": has 4294967296 bytes, expected at most 4294967295");
}

TEST_F(TextFileTest, MissingFile) {
  Crc64 checksum;
  const auto file = OpenTextFile(folder_.File("none"), checksum);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().message,
            folder_.File("none") + ": cannot open: No such file or directory");
}

TEST_F(TextFileTest, TranslationsHaveAsManyLines) {
  folder_.Write("de", "ein haus\nzwei\n");
  folder_.Write("en", "a house\ntwo");
  folder_.Write("fr", "une maison\n");
  Crc64 checksum;
  const TextFile de = OpenTextFile(folder_.File("de"), checksum).value();
  const TextFile en = OpenTextFile(folder_.File("en"), checksum).value();
  const TextFile fr = OpenTextFile(folder_.File("fr"), checksum).value();
  EXPECT_TRUE(CheckSameLines(de, en).ok());
  EXPECT_EQ(CheckSameLines(de, fr).error().message, folder_.File("de") + ": has 2 lines, but " +
                                                        folder_.File("fr") +
                                                        " has 1; expected a translation in each");
}

}  // namespace
}  // namespace thimble
