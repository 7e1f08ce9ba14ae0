#include "thimble/data/text/subwords/prepared_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/fake_dataset.h"
#include "thimble/base/file_reader.h"

namespace thimble {
namespace {

class PreparedFileTest : public ::testing::Test {
 protected:
  // How the file compares after these parts were written.
  EarlierFile Compare(const std::vector<std::string>& parts) {
    PreparedFile file = PreparedFile::Create(path_).value();
    for (const std::string& part : parts) EXPECT_TRUE(file.Write(part).ok());
    return file.earlier();
  }

  TestFolder folder_{"prepared_file"};
  std::string path_ = folder_.File("train.de");
};

TEST_F(PreparedFileTest, AppearsWithCommit) {
  PreparedFile file = PreparedFile::Create(path_).value();
  EXPECT_EQ(file.path(), path_);
  ASSERT_TRUE(file.Write("ein ").ok());
  ASSERT_TRUE(file.Write("haus\n").ok());
  EXPECT_EQ(file.earlier(), EarlierFile::kNone);
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(file.Commit().ok());
  EXPECT_EQ(ReadWholeFile(path_, 100).value(), "ein haus\n");
}

TEST_F(PreparedFileTest, ComparesWithTheEarlierFile) {
  folder_.Write("train.de", "ein haus\n");
  EXPECT_EQ(Compare({"ein ", "haus\n"}), EarlierFile::kSame);
  EXPECT_EQ(Compare({"ein ", "maus\n"}), EarlierFile::kDiffers);
  EXPECT_EQ(Compare({"mein ", "haus\n"}), EarlierFile::kDiffers);
  EXPECT_EQ(Compare({"ein ", "haus\n", "zwei\n"}), EarlierFile::kDiffers);
  EXPECT_EQ(Compare({"ein "}), EarlierFile::kDiffers);
  EXPECT_EQ(Compare({}), EarlierFile::kDiffers);
  EXPECT_EQ(ReadWholeFile(path_, 100).value(), "ein haus\n");
}

TEST_F(PreparedFileTest, ComparesLargeParts) {
  const std::string large(100'000, 'x');
  folder_.Write("train.de", large + "y");
  EXPECT_EQ(Compare({large, "y"}), EarlierFile::kSame);
  EXPECT_EQ(Compare({large, "z"}), EarlierFile::kDiffers);
  EXPECT_EQ(Compare({"x" + large}), EarlierFile::kDiffers);
}

TEST_F(PreparedFileTest, NoPlaceForAFile) {
  EXPECT_FALSE(PreparedFile::Create(folder_.File("none/train.de")).ok());
  std::filesystem::create_directory(path_);
  EXPECT_THAT(PreparedFile::Create(path_).error().message,
              testing::HasSubstr("exists and is not a regular file"));
}

}  // namespace
}  // namespace thimble
