#include "thimble/base/file_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

namespace thimble {
namespace {

std::string WriteTestFile(const std::string& name, const std::string& content) {
  const std::string path =
      ::testing::TempDir() + "/file_reader_" + std::to_string(::getpid()) + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string ReadText(const FileReader& reader, int64_t offset, size_t size) {
  std::string text(size, '?');
  const auto result = reader.ReadAt(offset, std::as_writable_bytes(std::span(text)));
  return result.ok() ? text : result.error().message;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FileReaderTest, ReadsAnyRange) {
  const auto reader = FileReader::Open(WriteTestFile("range", "0123456789"));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->size_bytes(), 10);
  EXPECT_EQ(ReadText(*reader, 0, 10), "0123456789");
  EXPECT_EQ(ReadText(*reader, 7, 3), "789");
  EXPECT_EQ(ReadText(*reader, 10, 0), "");
}

TEST(FileReaderTest, ReadBeyondTheEndNamesFileOffsetAndBytes) {
  const std::string path = WriteTestFile("short", "0123456789");
  const auto reader = FileReader::Open(path);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(ReadText(*reader, 8, 3),
            path + ": file ends early: expected 3 bytes at offset 8, got 2");
  EXPECT_EQ(ReadText(*reader, 11, 1),
            path + ": file ends early: expected 1 bytes at offset 11, got 0");
  EXPECT_TRUE(Contains(ReadText(*reader, INT64_MAX, 1), "file ends early"));
  EXPECT_TRUE(Contains(ReadText(*reader, -1, 1), "offset -1"));
}

TEST(FileReaderTest, FileThatShrankIsAnError) {
  const std::string path = WriteTestFile("shrinks", "0123456789");
  const auto reader = FileReader::Open(path);
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  EXPECT_EQ(ReadText(*reader, 2, 5),
            path + ": file ends early: expected 5 bytes at offset 2, got 2");
}

TEST(FileReaderTest, ChangesAfterOpeningAreNoticed) {
  const std::string path = WriteTestFile("changes", "0123456789");
  auto reader = FileReader::Open(path);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->CheckUnchanged().ok());
  const FileReader moved = std::move(*reader);
  EXPECT_TRUE(moved.CheckUnchanged().ok());

  const auto opened = std::filesystem::last_write_time(path);
  std::filesystem::last_write_time(path, opened + std::chrono::seconds(1));
  const auto written = moved.CheckUnchanged();
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(written.error().message, path + ": was written to after it was opened");

  ASSERT_EQ(::truncate(path.c_str(), 4), 0);
  const auto shorter = moved.CheckUnchanged();
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.error().message,
            path + ": has changed since it was opened: it has 4 bytes, had 10");
}

TEST(FileReaderTest, FileReplacedByAnotherStaysAsItWas) {
  const std::string path = WriteTestFile("replaced", "0123456789");
  const auto reader = FileReader::Open(path);
  ASSERT_TRUE(reader.ok());
  std::filesystem::rename(WriteTestFile("other", "other"), path);
  EXPECT_TRUE(reader->CheckUnchanged().ok());
  EXPECT_EQ(ReadText(*reader, 0, 10), "0123456789");
}

TEST(FileReaderTest, MissingFileGivesPathAndReason) {
  const auto reader = FileReader::Open("/nowhere/at/all");
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(reader.error().message, "/nowhere/at/all: cannot open: No such file or directory");
}

TEST(FileReaderTest, FolderIsRejected) {
  const auto reader = FileReader::Open(::testing::TempDir());
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(Contains(reader.error().message, "is a folder"));
}

TEST(FileReaderTest, PipeIsRejectedWithoutWaitingForAWriter) {
  const std::string path =
      ::testing::TempDir() + "/file_reader_" + std::to_string(::getpid()) + "pipe";
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto reader = FileReader::Open(path);
  ASSERT_FALSE(reader.ok());
  EXPECT_TRUE(Contains(reader.error().message, "not a regular file"));
  std::filesystem::remove(path);
}

TEST(FileReaderTest, MovingHandsTheFileOver) {
  auto first = FileReader::Open(WriteTestFile("first", "first"));
  auto second = FileReader::Open(WriteTestFile("second", "second"));
  ASSERT_TRUE(first.ok() && second.ok());
  FileReader moved(std::move(*first));
  EXPECT_EQ(ReadText(moved, 0, 5), "first");
  moved = std::move(*second);
  EXPECT_EQ(ReadText(moved, 0, 6), "second");
  EXPECT_EQ(moved.size_bytes(), 6);
}

TEST(ReadWholeFileTest, ReadsUpToTheLimit) {
  const std::string path = WriteTestFile("whole", std::string("a\0b", 3));
  EXPECT_EQ(*ReadWholeFile(path, 3), std::string("a\0b", 3));
  EXPECT_EQ(*ReadWholeFile(WriteTestFile("empty", ""), 0), "");
  const auto too_long = ReadWholeFile(path, 2);
  ASSERT_FALSE(too_long.ok());
  EXPECT_EQ(too_long.error().message, path + ": has 3 bytes, expected at most 2");
  EXPECT_FALSE(ReadWholeFile("/nowhere", 10).ok());
}

}  // namespace
}  // namespace thimble
