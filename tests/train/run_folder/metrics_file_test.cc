#include "thimble/train/run_folder/metrics_file.h"

#include "tests/train/file_fixture.h"

namespace thimble {
namespace {

class MetricsFileTest : public FileFixture {
 protected:
  MetricsFile MustOpen(int64_t size_bytes, uint64_t checksum) {
    auto file = MetricsFile::Open(path_, size_bytes, checksum);
    THIMBLE_CHECK(file.ok(), "{}", file.error().message);
    return std::move(file).value();
  }
  std::string Refusal(int64_t size_bytes, uint64_t checksum) {
    const std::string before = Content(path_);
    const auto file = MetricsFile::Open(path_, size_bytes, checksum);
    if (file.ok()) return "was accepted";
    EXPECT_EQ(file.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(Content(path_), before);
    return file.error().message;
  }
  static uint64_t ChecksumOf(const std::string& text) {
    Crc64 checksum;
    checksum.Append(text);
    return checksum.value();
  }
};

TEST_F(MetricsFileTest, GoesOnAfterTheCheckpoint) {
  int64_t size_bytes = 0;
  uint64_t checksum = 0;
  {
    MetricsFile file = MustOpen(0, 0);
    ASSERT_TRUE(file.Append("one").ok());
    ASSERT_TRUE(file.Sync().ok());
    size_bytes = file.size_bytes();
    checksum = file.checksum();
    ASSERT_TRUE(file.Append("will be written again").ok());
  }
  EXPECT_EQ(size_bytes, 4);
  EXPECT_EQ(checksum, ChecksumOf("one\n"));
  MetricsFile file = MustOpen(size_bytes, checksum);
  ASSERT_TRUE(file.Append("two").ok());
  EXPECT_EQ(Content(path_), "one\ntwo\n");
  EXPECT_EQ(file.size_bytes(), 8);
  EXPECT_EQ(file.checksum(), ChecksumOf("one\ntwo\n"));
}

TEST_F(MetricsFileTest, LinesOfAnEarlierRunAreDropped) {
  Put(path_, "old\n");
  MustOpen(0, 0);
  EXPECT_EQ(Content(path_), "");
}

TEST_F(MetricsFileTest, AMissingFileStartsEmpty) {
  MetricsFile file = MustOpen(1000, 17);
  ASSERT_TRUE(file.Append("two").ok());
  EXPECT_EQ(Content(path_), "two\n");
  EXPECT_EQ(file.checksum(), ChecksumOf("two\n"));
}

TEST_F(MetricsFileTest, DamageIsRefused) {
  Put(path_, "one\ntwo\n");
  EXPECT_EQ(
      Refusal(9, ChecksumOf("one\ntwo\n3"))
          .find(path_ + ": is damaged: has 8 bytes, the checkpoint records 9; to continue without "
                        "these lines, move the file away"),
      0U);
  EXPECT_EQ(Refusal(4, ChecksumOf("ome\n")).find(path_ + ": is damaged or was edited"), 0U);
  MustOpen(4, ChecksumOf("one\n"));
}

TEST_F(MetricsFileTest, LongFilesAreReadInPieces) {
  const std::string lines(50'000, 'x');
  Put(path_, lines + "rest");
  EXPECT_EQ(MustOpen(50'000, ChecksumOf(lines)).checksum(), ChecksumOf(lines));
  EXPECT_EQ(Content(path_), lines);
}

TEST_F(MetricsFileTest, OnAFullDisk) {
  MetricsFile file = MustOpen(0, 0);
  const ScopedFileSizeLimit limit(2);
  const Result<void> failed = file.Append("longer");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(failed.error().message.find(path_), 0U);
}

TEST_F(MetricsFileTest, CannotBeOpened) {
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(MetricsFile::Open(path_, 0, 0).ok());
}

}  // namespace
}  // namespace thimble
