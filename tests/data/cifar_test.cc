#include "thimble/data/cifar.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/data/fake_dataset.h"

namespace thimble {
namespace {

std::string OpenError(CifarVersion version, const std::string& folder) {
  const auto data = OpenCifar(version, folder);
  if (data.ok()) return "opened";
  EXPECT_EQ(data.error().kind, ErrorKind::kBadInput);
  return data.error().message;
}

TEST(CifarTest, ReadsCifar10AcrossFiles) {
  const TestFolder folder("cifar10");
  WriteCifar10(folder);
  const auto data = OpenCifar(CifarVersion::kCifar10, folder.path());
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->train->size(), 10);
  EXPECT_EQ(data->test->size(), 3);
  EXPECT_EQ(data->train->format().classes, 10);
  std::vector<uint8_t> pixels(3072);
  for (int32_t i = 0; i < 10; ++i) {
    int32_t label = -1;
    ASSERT_TRUE(data->train->Read(i, pixels, label).ok());
    EXPECT_EQ(label, i);
    for (int byte = 0; byte < 3072; ++byte) {
      const int channel = byte % 3;
      const int pixel = byte / 3;
      ASSERT_EQ(pixels[byte], (10 * i + 1024 * channel + pixel) % 256) << "byte " << byte;
    }
  }
}

TEST(CifarTest, ReadsTheFineLabelOfCifar100) {
  const TestFolder folder("cifar100");
  WriteCifar100(folder);
  const auto data = OpenCifar(CifarVersion::kCifar100, folder.path());
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ(data->train->size(), 2);
  EXPECT_EQ(data->train->format().classes, 100);
  std::vector<uint8_t> pixels(3072);
  int32_t label = -1;
  ASSERT_TRUE(data->train->Read(1, pixels, label).ok());
  EXPECT_EQ(label, 98);
  EXPECT_EQ(pixels[0], 7);
  EXPECT_EQ(pixels[3], 8);
}

TEST(CifarTest, MissingFolderSaysWhatWasExpectedThere) {
  const std::string message = OpenError(CifarVersion::kCifar10, "/nowhere/cifar");
  EXPECT_EQ(message.find("/nowhere/cifar: no such folder"), 0U) << message;
  EXPECT_NE(message.find("data_batch_1.bin"), std::string::npos) << message;
  EXPECT_NE(message.find("test_batch.bin"), std::string::npos) << message;
}

TEST(CifarTest, FileInPlaceOfTheFolder) {
  const TestFolder folder("not_a_folder");
  folder.Write("file", "x");
  EXPECT_NE(OpenError(CifarVersion::kCifar100, folder.File("file")).find("no such folder"),
            std::string::npos);
}

TEST(CifarTest, MissingFileIsNamed) {
  const TestFolder folder("missing_file");
  WriteCifar10(folder);
  std::filesystem::remove(folder.File("data_batch_4.bin"));
  EXPECT_EQ(
      OpenError(CifarVersion::kCifar10, folder.path()),
      folder.File("data_batch_4.bin") +
          ": cannot open: No such file or directory (expected a file of the binary version of "
          "CIFAR-10)");
}

TEST(CifarTest, FolderInPlaceOfAFile) {
  const TestFolder folder("folder_for_file");
  WriteCifar10(folder);
  std::filesystem::remove(folder.File("test_batch.bin"));
  std::filesystem::create_directory(folder.File("test_batch.bin"));
  EXPECT_EQ(OpenError(CifarVersion::kCifar10, folder.path())
                .find(folder.File("test_batch.bin") + ": is a folder"),
            0U);
}

TEST(CifarTest, TruncatedFileNamesTheBrokenRecord) {
  const TestFolder folder("truncated");
  WriteCifar10(folder);
  std::filesystem::resize_file(folder.File("data_batch_2.bin"), 3073 + 100);
  EXPECT_EQ(OpenError(CifarVersion::kCifar10, folder.path()),
            folder.File("data_batch_2.bin") +
                ": size of 3173 bytes is not a multiple of 3073 (a CIFAR-10 record): record 1 at "
                "offset 3073 has 100 bytes");
}

TEST(CifarTest, RecordsOfTheOtherVersionAreRejected) {
  const TestFolder folder("other_version");
  folder.Write("train.bin", CifarRecord("\1", 0));
  folder.Write("test.bin", CifarRecord("\1", 0));
  EXPECT_NE(OpenError(CifarVersion::kCifar100, folder.path()).find("not a multiple of 3074"),
            std::string::npos);
}

TEST(CifarTest, EmptyFileIsRejected) {
  const TestFolder folder("empty");
  WriteCifar100(folder);
  folder.Write("test.bin", "");
  EXPECT_EQ(OpenError(CifarVersion::kCifar100, folder.path()),
            folder.File("test.bin") + ": file is empty, expected CIFAR-100 records of 3074 bytes");
}

TEST(CifarTest, LabelOutOfRangeOfCifar10) {
  const TestFolder folder("label10");
  WriteCifar10(folder);
  // After the first chunk of the scan.
  std::string content;
  for (int i = 0; i < 30; ++i) content += CifarRecord(i == 25 ? "\x0a" : "\x09", i);
  folder.Write("data_batch_3.bin", content);
  EXPECT_EQ(OpenError(CifarVersion::kCifar10, folder.path()),
            folder.File("data_batch_3.bin") +
                ": label of record 25 (offset 76825) is 10, expected 0 to 9 in CIFAR-10");
}

TEST(CifarTest, LabelsOutOfRangeOfCifar100) {
  const TestFolder folder("label100");
  WriteCifar100(folder);
  folder.Write("train.bin", CifarRecord("\x13\x63", 0) + CifarRecord("\x13\x64", 0));
  EXPECT_EQ(OpenError(CifarVersion::kCifar100, folder.path()),
            folder.File("train.bin") +
                ": label of record 1 (offset 3075) is 100, expected 0 to 99 in CIFAR-100");
  folder.Write("train.bin", CifarRecord("\x14\x01", 0));
  EXPECT_NE(OpenError(CifarVersion::kCifar100, folder.path()).find("is 20, expected 0 to 19"),
            std::string::npos);
}

TEST(CifarTest, FileCutAfterOpeningIsAnErrorOfRead) {
  const TestFolder folder("cut_later");
  WriteCifar10(folder);
  const auto data = OpenCifar(CifarVersion::kCifar10, folder.path());
  ASSERT_TRUE(data.ok());
  std::filesystem::resize_file(folder.File("test_batch.bin"), 3073);
  std::vector<uint8_t> pixels(3072);
  int32_t label = -1;
  EXPECT_TRUE(data->test->Read(0, pixels, label).ok());
  EXPECT_FALSE(data->test->Read(1, pixels, label).ok());
}

}  // namespace
}  // namespace thimble
