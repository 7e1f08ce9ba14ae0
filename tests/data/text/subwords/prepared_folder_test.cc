#include "thimble/data/text/subwords/prepared_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/fake_dataset.h"
#include "thimble/base/file_reader.h"

namespace thimble {
namespace {

class PreparedFolderTest : public ::testing::Test {
 protected:
  // Prepares two files with these contents.
  Result<void> PrepareBoth(const std::string& first, const std::string& last,
                           bool overwrite = false) {
    THIMBLE_ASSIGN_OR_RETURN(PreparedFolder to, PreparedFolder::Open(path_, overwrite));
    THIMBLE_TRY(to.Add("first", first));
    THIMBLE_TRY(to.LeaveOut("none"));
    THIMBLE_TRY(to.Add("last", last));
    EXPECT_TRUE(std::filesystem::exists(path_ + "/last.tmp"));
    return to.Commit();
  }
  std::string Both() const {
    std::string both;
    for (const char* name : {"/first", "/last"}) {
      const auto content = ReadWholeFile(path_ + name, 100);
      both += content.ok() ? *content : "-";
    }
    EXPECT_FALSE(std::filesystem::exists(path_ + "/first.tmp"));
    return both;
  }

  TestFolder folder_{"prepared_folder"};
  std::string path_ = folder_.File("a/b");
};

TEST_F(PreparedFolderTest, FilesAppearTogether) {
  PreparedFolder to = PreparedFolder::Open(path_, false).value();
  ASSERT_TRUE(to.Add("first", "1").ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/first"));
  ASSERT_TRUE(to.Commit().ok());
  EXPECT_TRUE(std::filesystem::exists(path_ + "/first"));
}

TEST_F(PreparedFolderTest, TheSameAgainChangesNothing) {
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  const auto time = std::filesystem::last_write_time(path_ + "/last");
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  EXPECT_EQ(std::filesystem::last_write_time(path_ + "/last"), time);
  EXPECT_EQ(Both(), "12");
}

TEST_F(PreparedFolderTest, CompletesWhatIsMissing) {
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  std::filesystem::remove(path_ + "/last");
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  EXPECT_EQ(Both(), "12");
}

TEST_F(PreparedFolderTest, OtherContentStaysUnlessItMayBeReplaced) {
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  const auto refused = PrepareBoth("1", "3");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            path_ + "/last: there is already a file with other content; --overwrite replaces it");
  EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(Both(), "12");
  ASSERT_TRUE(PrepareBoth("1", "3", /*overwrite=*/true).ok());
  EXPECT_EQ(Both(), "13");
}

TEST_F(PreparedFolderTest, FilesThatDoNotBelong) {
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  folder_.Write("a/b/none", "x");
  const auto refused = PrepareBoth("1", "2");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, testing::HasSubstr("/none: does not belong to this text"));
  ASSERT_TRUE(PrepareBoth("1", "2", /*overwrite=*/true).ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/none"));
  EXPECT_EQ(Both(), "12");
}

// The last file is the sign of a complete folder: it disappears first.
TEST_F(PreparedFolderTest, InterruptedFolderHasNoLastFile) {
  ASSERT_TRUE(PrepareBoth("1", "2").ok());
  PreparedFolder to = PreparedFolder::Open(path_, /*overwrite=*/true).value();
  ASSERT_TRUE(to.Add("first", "3").ok());
  ASSERT_TRUE(to.Add("last", "4").ok());
  std::filesystem::remove(path_ + "/first");
  std::filesystem::create_directories(path_ + "/first/in the way");
  EXPECT_FALSE(to.Commit().ok());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/last"));
}

TEST_F(PreparedFolderTest, NoFolder) {
  folder_.Write("a", "a file");
  const auto opened = PreparedFolder::Open(path_, false);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message, testing::HasSubstr("cannot be used"));
}

}  // namespace
}  // namespace thimble
