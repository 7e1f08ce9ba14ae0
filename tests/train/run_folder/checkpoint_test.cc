#include "thimble/train/run_folder/checkpoint.h"

#include <vector>

#include "tests/train/file_fixture.h"

namespace thimble {
namespace {

class CheckpointTest : public FileFixture {
 protected:
  CheckpointTest() : run_(folder_ + "/run/checkpoint") {}

  std::vector<StoredTensor> Tensors() {
    return {{"weight", {weight_.data(), DType::kF32, {2, 2}}, FileLayout::kAsStored},
            {"momentum", {momentum_.data(), DType::kF32, {4}}, FileLayout::kAsStored}};
  }
  void Clear() {
    weight_.assign(4, 0.0F);
    momentum_.assign(4, 0.0F);
  }
  // Rewrites the checkpoint with other metadata.
  void SaveWith(const std::string& key, const std::string& value) {
    TensorMetadata metadata = SafetensorsReader::Open(CheckpointPath(run_))->metadata();
    metadata[key] = value;
    ASSERT_TRUE(SaveTensors(CheckpointPath(run_), Tensors(), metadata).ok());
  }
  // Both readers must fail for the same reason, and no view may change.
  std::string Refusal() {
    Clear();
    const auto info = ReadCheckpointInfo(run_);
    const auto loaded = LoadCheckpoint(run_, "wrn-28-2", Tensors());
    EXPECT_EQ(weight_, std::vector<float>(4));
    if (info.ok() || loaded.ok()) return "was accepted";
    EXPECT_EQ(info.error().kind, ErrorKind::kBadInput);
    EXPECT_EQ(info.error().message, loaded.error().message);
    return info.error().message;
  }

  std::string run_;
  CheckpointInfo info_ = {kCheckpointVersion, "wrn-28-2",
                          12345678901,        "AVX2",
                          "9f86d081",         R"({"epoch": 3, "name": "größe \"x\"\n"})"};
  std::vector<float> weight_ = {1, 2, 3, 4};
  std::vector<float> momentum_ = {-1, -2, -3, -4};
};

TEST_F(CheckpointTest, ComesBackWhole) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  Clear();
  const auto found = ReadCheckpointInfo(run_);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, info_);
  const auto loaded = LoadCheckpoint(run_, "wrn-28-2", Tensors());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(*loaded, info_);
  EXPECT_EQ(weight_, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(momentum_, (std::vector<float>{-1, -2, -3, -4}));
}

TEST_F(CheckpointTest, TheLatestCounts) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  info_.step = 0;
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  EXPECT_EQ((*ReadCheckpointInfo(run_))->step, 0);
}

TEST_F(CheckpointTest, NoneYet) {
  EXPECT_EQ(*ReadCheckpointInfo(run_), std::nullopt);
  std::filesystem::create_directories(run_);
  EXPECT_EQ(*ReadCheckpointInfo(run_), std::nullopt);
  const auto loaded = LoadCheckpoint(run_, "wrn-28-2", Tensors());
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find(CheckpointPath(run_)), std::string::npos);
}

TEST_F(CheckpointTest, StaleTemporaryIsIgnoredAndOverwritten) {
  std::filesystem::create_directories(run_);
  const std::string next = run_ + "/next.safetensors";
  Put(next, std::string(10'000, 'x'));
  Put(next + ".tmp", std::string(10'000, 'x'));
  EXPECT_EQ(*ReadCheckpointInfo(run_), std::nullopt);
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  EXPECT_TRUE(LoadCheckpoint(run_, "wrn-28-2", Tensors()).ok());
  EXPECT_FALSE(std::filesystem::exists(next));
  EXPECT_FALSE(std::filesystem::exists(next + ".tmp"));
}

TEST_F(CheckpointTest, FullDiskLeavesThePreviousCheckpoint) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  CheckpointInfo next = info_;
  next.step += 1;
  Result<void> result;
  {
    const ScopedFileSizeLimit limit(200);
    result = SaveCheckpoint(run_, next, Tensors());
  }
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(*LoadCheckpoint(run_, "wrn-28-2", Tensors()), info_);
}

TEST_F(CheckpointTest, OtherModel) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  Clear();
  const auto loaded = LoadCheckpoint(run_, "wrn-40-4", Tensors());
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(loaded.error().message,
            CheckpointPath(run_) +
                ": expected a checkpoint of model \"wrn-40-4\", found one of "
                "\"wrn-28-2\"");
  EXPECT_EQ(weight_, std::vector<float>(4));
}

TEST_F(CheckpointTest, OtherTensors) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  Clear();
  std::vector<StoredTensor> fewer = Tensors();
  fewer.pop_back();
  const auto loaded = LoadCheckpoint(run_, "wrn-28-2", fewer);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(weight_, std::vector<float>(4));
}

TEST_F(CheckpointTest, NewerAndImpossibleVersions) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  SaveWith("thimble.checkpoint_version", "3");
  EXPECT_EQ(Refusal(),
            CheckpointPath(run_) +
                ": expected a checkpoint of format version 2, found 3: written by a newer Thimble");
  SaveWith("thimble.checkpoint_version", "1");
  EXPECT_NE(Refusal().find("found 1: written by an older Thimble"), std::string::npos);
  for (const char* version : {"0", "-1", "", "2x", " 2", "99999999999999999999"}) {
    SaveWith("thimble.checkpoint_version", version);
    EXPECT_NE(Refusal().find("expected a"), std::string::npos) << version;
  }
}

TEST_F(CheckpointTest, BadStep) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  for (const char* step : {"-1", "", "1.5", "9223372036854775808", "twelve"}) {
    SaveWith("thimble.step", step);
    EXPECT_NE(Refusal().find("for metadata 'thimble.step'"), std::string::npos) << step;
  }
}

TEST_F(CheckpointTest, WeightsAreNoCheckpoint) {
  std::filesystem::create_directories(run_);
  ASSERT_TRUE(SaveTensors(CheckpointPath(run_), Tensors(), {{"format", "pt"}}).ok());
  EXPECT_NE(Refusal().find("not a checkpoint of Thimble"), std::string::npos);
}

TEST_F(CheckpointTest, Truncated) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  const std::string whole = Content(CheckpointPath(run_));
  for (size_t size = 0; size < whole.size(); size += 7) {
    Put(CheckpointPath(run_), whole.substr(0, size));
    EXPECT_NE(Refusal().find(": byte "), std::string::npos) << size;
  }
}

TEST_F(CheckpointTest, EveryFlippedBitIsFound) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  const std::string whole = Content(CheckpointPath(run_));
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    Put(CheckpointPath(run_), damaged);
    const auto loaded = LoadCheckpoint(run_, "wrn-28-2", Tensors());
    // If the checksum's own name is hit, there is no checksum to compare, and all else is intact.
    if (loaded.ok()) {
      EXPECT_EQ(damaged.find("thimble.checksum"), std::string::npos) << bit;
      EXPECT_EQ(*loaded, info_) << bit;
      EXPECT_EQ(weight_, (std::vector<float>{1, 2, 3, 4})) << bit;
    } else {
      EXPECT_EQ(loaded.error().message.find(CheckpointPath(run_)), 0U) << bit;
    }
  }
}

TEST_F(CheckpointTest, OffersTheOneBefore) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  const std::string before = Content(CheckpointPath(run_));
  CheckpointInfo next = info_;
  next.step += 1;
  ASSERT_TRUE(SaveCheckpoint(run_, next, Tensors()).ok());
  const std::string previous = run_ + "/previous.safetensors";
  EXPECT_TRUE(Content(previous) == before);
  std::string damaged = Content(CheckpointPath(run_));
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  Put(CheckpointPath(run_), damaged);
  const std::string refusal = Refusal();
  EXPECT_NE(refusal.find(CheckpointPath(run_) + ": is damaged"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("the previous checkpoint, of step 12345678901, is intact: to continue "
                         "from there, run: mv " +
                         previous + " " + CheckpointPath(run_)),
            std::string::npos)
      << refusal;
  // It is not offered where it is damaged too.
  Put(previous, damaged);
  EXPECT_EQ(Refusal().find("the previous checkpoint"), std::string::npos);
  Put(previous, before);
  std::filesystem::rename(previous, CheckpointPath(run_));
  EXPECT_EQ(*LoadCheckpoint(run_, "wrn-28-2", Tensors()), info_);
}

TEST_F(CheckpointTest, ReturnsToTheOneBefore) {
  EXPECT_EQ(*ReturnToPreviousCheckpoint(run_), std::nullopt);
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  EXPECT_EQ(*ReturnToPreviousCheckpoint(run_), std::nullopt);
  CheckpointInfo next = info_;
  next.step += 1;
  ASSERT_TRUE(SaveCheckpoint(run_, next, Tensors()).ok());
  EXPECT_EQ(*ReturnToPreviousCheckpoint(run_), info_.step);
  EXPECT_EQ(**ReadCheckpointInfo(run_), info_);
}

TEST_F(CheckpointTest, FolderCannotBeMade) {
  Put(folder_ + "/run", "a file");
  const Result<void> saved = SaveCheckpoint(run_, info_, Tensors());
  ASSERT_FALSE(saved.ok());
  EXPECT_EQ(saved.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(saved.error().message.find(run_), std::string::npos);
  EXPECT_FALSE(ReadCheckpointInfo(run_).ok());
}

TEST_F(CheckpointTest, NamesThatCannotBeSaved) {
  ASSERT_TRUE(SaveCheckpoint(run_, info_, Tensors()).ok());
  CheckpointInfo bad = info_;
  bad.model = "\xff\xfe";
  EXPECT_EQ(SaveCheckpoint(run_, bad, Tensors()).error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(**ReadCheckpointInfo(run_), info_);
}

}  // namespace
}  // namespace thimble
