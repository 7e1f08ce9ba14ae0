#include "thimble/train/weights/safetensors_writer.h"

#include <array>

#include "tests/train/file_fixture.h"
#include "thimble/train/weights/safetensors_reader.h"

namespace thimble {
namespace {

using SafetensorsWriterTest = FileFixture;

const std::vector<TensorSpec> kSpecs = {{"w", DType::kF32, {2, 3}}, {"mask", DType::kU8, {5}}};
constexpr size_t kDataBytes = 2 * 3 * 4 + 5;

std::string Data() {
  std::string data;
  for (size_t i = 0; i < kDataBytes; ++i) data += static_cast<char>(i * 37);
  return data;
}

// Writes Data() in pieces of `piece` bytes.
Result<void> WriteInPieces(const std::string& path, size_t piece) {
  THIMBLE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                           SafetensorsWriter::Create(path, kSpecs, {{"step", "7"}}));
  const std::string data = Data();
  for (size_t at = 0; at < data.size(); at += piece) {
    THIMBLE_TRY(writer.Append(BytesOf(std::string_view(data).substr(at, piece))));
  }
  return writer.Finish();
}

TEST_F(SafetensorsWriterTest, ReadsBack) {
  ASSERT_TRUE(WriteInPieces(path_, kDataBytes).ok());
  const Result<SafetensorsReader> reader = SafetensorsReader::Open(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->metadata(), (TensorMetadata{{"step", "7"}}));
  std::array<char, 5> mask = {};
  ASSERT_TRUE(reader->Read(*reader->Find("mask"), std::as_writable_bytes(std::span(mask))).ok());
  EXPECT_EQ(std::string(mask.data(), 5), Data().substr(24));
}

TEST_F(SafetensorsWriterTest, BytesDoNotDependOnThePieces) {
  ASSERT_TRUE(WriteInPieces(path_, kDataBytes).ok());
  const std::string expected = Content(path_);
  EXPECT_EQ((expected.size() - kDataBytes) % 8, 0U);
  EXPECT_TRUE(expected.ends_with(Data()));
  for (size_t piece = 1; piece < kDataBytes; ++piece) {
    ASSERT_TRUE(WriteInPieces(path_, piece).ok());
    EXPECT_EQ(Content(path_), expected) << piece;
  }
}

TEST_F(SafetensorsWriterTest, PreviousFileStaysUntilFinish) {
  Put(path_, "old");
  {
    Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path_, kSpecs, {});
    ASSERT_TRUE(writer.ok() && writer->Append(BytesOf(Data())).ok());
    EXPECT_EQ(Content(path_), "old");
  }
  EXPECT_EQ(Content(path_), "old");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".tmp"));
}

TEST_F(SafetensorsWriterTest, BadSpecsNameTheFileAndLeaveNothing) {
  const std::vector<TensorSpec> specs = {{"w", DType::kF32, {1}}, {"w", DType::kF32, {1}}};
  const Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path_, specs, {});
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(writer.error().message.starts_with(path_));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(SafetensorsWriterTest, NoPlaceForTheFile) {
  const auto writer = SafetensorsWriter::Create(folder_ + "/missing/file", kSpecs, {});
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().kind, ErrorKind::kFailed);
}

TEST_F(SafetensorsWriterTest, FullDisk) {
  ASSERT_TRUE(WriteInPieces(path_, 8).ok());
  const std::string previous = Content(path_);
  Result<void> result;
  {
    const ScopedFileSizeLimit limit(100);
    result = WriteInPieces(path_, 8);
  }
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(Content(path_), previous);
}

TEST_F(SafetensorsWriterTest, WrongAmountsAreProgrammerErrors) {
  Result<SafetensorsWriter> writer = SafetensorsWriter::Create(path_, kSpecs, {});
  ASSERT_TRUE(writer.ok());
  EXPECT_DEATH((void)writer->Finish(), "finished with 29 bytes missing");
  EXPECT_DEATH((void)writer->Append(BytesOf(Data() + "x")),
               "30 bytes appended, but only 29 are missing");
}

}  // namespace
}  // namespace thimble
