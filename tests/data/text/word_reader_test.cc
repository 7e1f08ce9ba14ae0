#include "thimble/data/text/word_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

// The words of the file, "/" where a line ends and "#" where the file ends.
std::string ReadMarked(const std::string& content, size_t buffer_bytes = 4096, int64_t offset = 0) {
  const TestFolder folder("word_reader");
  folder.Write("file", content);
  const auto file = FileReader::Open(folder.File("file"));
  EXPECT_TRUE(file.ok());
  std::vector<char> buffer(buffer_bytes);
  WordReader reader(*file, offset, buffer);
  std::string marked;
  while (!marked.ends_with('#')) {
    const auto next = reader.Next();
    EXPECT_TRUE(next.ok());
    if (next->kind == WordOrEnd::Kind::kWord) marked += "[" + std::string(next->word) + "]";
    if (next->kind == WordOrEnd::Kind::kLineEnd) marked += "/";
    if (next->kind == WordOrEnd::Kind::kFileEnd) marked += "#";
  }
  return marked;
}

TEST(WordReaderTest, WordsAndLines) {
  EXPECT_EQ(ReadMarked("ein haus\nzwei\n"), "[ein][haus]/[zwei]/#");
  EXPECT_EQ(ReadMarked("ein haus\nzwei"), "[ein][haus]/[zwei]/#");
  EXPECT_EQ(ReadMarked("\n\n a \n\n"), "//[a]//#");
  EXPECT_EQ(ReadMarked("a\r\nb\r\n"), "[a]/[b]/#");
  EXPECT_EQ(ReadMarked("  "), "/#");
  EXPECT_EQ(ReadMarked("a\nb c\n", 4096, 2), "[b][c]/#");
  EXPECT_EQ(ReadMarked("a\nb c\n", 4096, 6), "#");
  EXPECT_EQ(ReadMarked("a\xe3\x80\x80"
                       "b\xc2\xa0\n"),
            "[a][b]/#");
}

// Words and characters of all lengths at all places of the buffer.
TEST(WordReaderTest, TheBufferDoesNotShow) {
  std::string content;
  std::string marked;
  for (size_t length = 1; length <= 300; ++length) {
    std::string word;
    for (size_t i = 0; i < length; ++i) word += i % 7 == 3 ? "ü" : "x";
    content += word + (length % 5 == 0 ? "\u2003" : " ") + (length % 11 == 0 ? "\n" : "");
    marked += "[" + word + "]" + (length % 11 == 0 ? "/" : "");
  }
  for (size_t bytes = WordReader::kMinBufferBytes; bytes < WordReader::kMinBufferBytes + 40;
       ++bytes) {
    ASSERT_EQ(ReadMarked(content, bytes), marked + "/#") << bytes;
  }
}

TEST(WordReaderTest, LongWordsAreSeveralWords) {
  const std::string most(kMaxWordBytes, 'x');
  EXPECT_EQ(ReadMarked(most + " y"), "[" + most + "][y]/#");
  EXPECT_EQ(ReadMarked(most), "[" + most + "]/#");
  // One byte more: cut before the last character that is whole.
  const std::string one_less(kMaxWordBytes - 1, 'x');
  EXPECT_EQ(ReadMarked(most + "y z"), "[" + one_less + "][xy][z]/#");
  EXPECT_EQ(ReadMarked(one_less + "üb"), "[" + one_less + "][üb]/#");
  const std::string very_long(100'000, 'x');
  const std::string marked = ReadMarked(very_long);
  EXPECT_EQ(std::count(marked.begin(), marked.end(), 'x'), 100'000);
}

TEST(WordReaderTest, KnowsWhereTheNextLineBegins) {
  const TestFolder folder("word_reader_offset");
  folder.Write("file", "a bb\n\nccc");
  const auto file = FileReader::Open(folder.File("file"));
  ASSERT_TRUE(file.ok());
  std::vector<char> buffer(4096);
  WordReader reader(*file, 0, buffer);
  std::vector<int64_t> begins;
  for (auto next = reader.Next(); next->kind != WordOrEnd::Kind::kFileEnd; next = reader.Next()) {
    if (next->kind == WordOrEnd::Kind::kLineEnd) begins.push_back(reader.offset());
  }
  EXPECT_EQ(begins, (std::vector<int64_t>{5, 6, 9}));
}

TEST(WordReaderTest, FileThatShrinksIsAnError) {
  const TestFolder folder("word_reader_shrinks");
  folder.Write("file", std::string(10'000, 'x') + " end");
  const auto file = FileReader::Open(folder.File("file"));
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(folder.File("file"), 5000);
  std::vector<char> buffer(4096);
  WordReader reader(*file, 0, buffer);
  std::string message;
  for (int i = 0; i < 20 && message.empty(); ++i) {
    const auto next = reader.Next();
    if (!next.ok()) message = next.error().message;
  }
  EXPECT_NE(message.find("file ends early"), std::string::npos) << message;
}

TEST(WordReaderDeathTest, BufferTooSmall) {
  const TestFolder folder("word_reader_small");
  folder.Write("file", "a");
  const auto file = FileReader::Open(folder.File("file"));
  ASSERT_TRUE(file.ok());
  std::vector<char> buffer(10);
  EXPECT_DEATH(WordReader(*file, 0, buffer), "a buffer of 10 bytes");
}

}  // namespace
}  // namespace thimble
