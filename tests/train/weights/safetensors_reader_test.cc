#include "thimble/train/weights/safetensors_reader.h"

#include <array>

#include "tests/train/file_fixture.h"

namespace thimble {
namespace {

// Malformed files are in safetensors_parser_test.cc.
using SafetensorsReaderTest = FileFixture;

constexpr const char* kHeader =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},)"
    R"("half":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},)"
    R"("none":{"dtype":"F32","shape":[0,3],"data_offsets":[12,12]}})";

TEST_F(SafetensorsReaderTest, FindsAndReads) {
  Put(path_, RawFile(kHeader, 12));
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->metadata().at("format"), "pt");
  EXPECT_EQ(reader->tensors().size(), 3U);
  const TensorEntry* entry = reader->Find("w");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->shape, (Shape{1, 2}));
  std::array<int32_t, 2> values = {};
  ASSERT_TRUE(reader->Read(*entry, std::as_writable_bytes(std::span(values))).ok());
  EXPECT_EQ(values[1], 0x01010101);
}

TEST_F(SafetensorsReaderTest, ReadsRanges) {
  std::string file = RawFile(kHeader, 12);
  file[file.size() - 12 + 5] = 'x';
  Put(path_, file);
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  std::array<char, 3> bytes = {};
  ASSERT_TRUE(reader->Read(*reader->Find("w"), 5, std::as_writable_bytes(std::span(bytes))).ok());
  EXPECT_EQ(std::string(bytes.data(), 3), "x\x01\x01");
}

TEST_F(SafetensorsReaderTest, ReadsEmptyTensors) {
  Put(path_, RawFile(kHeader, 12));
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE(reader->Read(*reader->Find("none"), {}).ok());
}

TEST_F(SafetensorsReaderTest, UnknownNamesAreNotFound) {
  Put(path_, RawFile(kHeader, 12));
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  for (const char* name : {"", "W", "w ", "x", "__metadata__", "zzz"}) {
    EXPECT_EQ(reader->Find(name), nullptr);
  }
}

TEST_F(SafetensorsReaderTest, UnsupportedTypesFailWhenAskedFor) {
  Put(path_, RawFile(kHeader, 12));
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  std::array<std::byte, 4> bytes = {};
  const Result<void> result = reader->Read(*reader->Find("half"), bytes);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(result.error().message.find("tensor \"half\" has type \"I16\"; expected F32"),
            std::string::npos);
}

TEST_F(SafetensorsReaderTest, FileCutAfterOpening) {
  const std::string file = RawFile(kHeader, 12);
  Put(path_, file);
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  std::filesystem::resize_file(path_, file.size() - 8);
  std::array<std::byte, 8> bytes = {};
  EXPECT_FALSE(reader->Read(*reader->Find("w"), bytes).ok());
}

TEST_F(SafetensorsReaderTest, NoFile) {
  for (const std::string& path : {folder_ + "/missing", folder_, path_ + "/below"}) {
    const Result<SafetensorsReader> reader = SafetensorsReader::Open(path);
    ASSERT_FALSE(reader.ok()) << path;
    EXPECT_NE(reader.error().message.find(path), std::string::npos);
  }
}

TEST_F(SafetensorsReaderTest, WrongSizesAreProgrammerErrors) {
  Put(path_, RawFile(kHeader, 12));
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok());
  std::array<std::byte, 9> bytes = {};
  const TensorEntry& entry = *reader->Find("w");
  EXPECT_DEATH((void)reader->Read(entry, bytes), "9 bytes requested from tensor w, which has 8");
  EXPECT_DEATH((void)reader->Read(entry, 1, std::span(bytes).first(8)), "requested from tensor w");
  EXPECT_DEATH((void)reader->Read(entry, -1, std::span(bytes).first(1)), "requested from tensor w");
}

}  // namespace
}  // namespace thimble
