#include "thimble/train/run_folder.h"

#include "tests/train/file_fixture.h"
#include "thimble/train/options.h"

namespace thimble {
namespace {

class RunFolderTest : public FileFixture {
 protected:
  RunFolderTest() { config_.out = folder_ + "/a/run"; }

  // Leaves a run behind, as training does.
  void Start() const { Put(MustOpen().File("config.toml"), ToToml(config_)); }
  RunFolder MustOpen() const {
    auto folder = RunFolder::Open(config_);
    THIMBLE_CHECK(folder.ok(), "{}", folder.error().message);
    return std::move(folder).value();
  }
  std::string Refusal() const {
    const auto folder = RunFolder::Open(config_);
    if (folder.ok()) return "was accepted";
    EXPECT_EQ(folder.error().kind, ErrorKind::kBadInput);
    return folder.error().message;
  }

  TrainConfig config_;
};

TEST_F(RunFolderTest, MakesItselfWithItsParents) {
  const RunFolder folder = MustOpen();
  EXPECT_EQ(folder.path(), config_.out);
  EXPECT_TRUE(std::filesystem::is_directory(config_.out));
  EXPECT_EQ(folder.File("x"), config_.out + "/x");
  EXPECT_EQ(folder.checkpoint_folder(), CheckpointFolder(config_.out));
}

TEST_F(RunFolderTest, TakesAFreeNameWhereNoneIsGiven) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  config_.out.clear();
  config_.model = "wrn-10-1";
  config_.data = "shapes:4,4";
  EXPECT_EQ(MustOpen().path(), "runs/wrn-10-1-shapes-1");
  EXPECT_EQ(MustOpen().path(), "runs/wrn-10-1-shapes-2");
  config_.model = "wrn-10-1:group-norm=8,dropout=0.3";
  EXPECT_EQ(MustOpen().path(), "runs/wrn-10-1-group-norm-8-dropout-0.3-shapes-1");
  std::filesystem::current_path(before);
}

TEST_F(RunFolderTest, AFolderWithoutARunIsTaken) {
  std::filesystem::create_directories(config_.out);
  Put(config_.out + "/notes.txt", "mine");
  MustOpen();
  EXPECT_EQ(Content(config_.out + "/notes.txt"), "mine");
}

TEST_F(RunFolderTest, ARunIsContinuedOnlyWhenAsked) {
  Start();
  EXPECT_EQ(Refusal(), "--out " + config_.out +
                           ": holds a run already; add --resume to continue it, or choose another "
                           "folder");
  config_.resume = true;
  MustOpen();
  config_.threads = 7;
  config_.epochs = 99;
  MustOpen();
}

TEST_F(RunFolderTest, ResumeWithNothingThereStarts) {
  config_.resume = true;
  MustOpen();
}

TEST_F(RunFolderTest, OtherSettings) {
  Start();
  config_.resume = true;
  config_.learning_rate = 0.25;
  EXPECT_EQ(Refusal(), "--resume " + config_.out +
                           ": this run was started with other settings: --lr was '0.1' and is now "
                           "'0.25'");
}

TEST_F(RunFolderTest, DamagedConfiguration) {
  Start();
  Put(config_.out + "/config.toml", "model = \"wrn-28-2\"\nbatch = \n");
  config_.resume = true;
  EXPECT_EQ(Refusal().find(config_.out + "/config.toml:2: "), 0U) << Refusal();
}

TEST_F(RunFolderTest, CannotBe) {
  config_.out.clear();
  config_.resume = true;
  EXPECT_EQ(Refusal(), "--resume needs --out FOLDER");
  config_.resume = false;
  Put(folder_ + "/file", "x");
  for (const char* path : {"/file", "/file/run"}) {
    config_.out = folder_ + path;
    EXPECT_EQ(Refusal().find("--out: "), 0U) << Refusal();
  }
}

TEST_F(RunFolderTest, WritesWholeFiles) {
  const RunFolder folder = MustOpen();
  ASSERT_TRUE(folder.Write("plan.json", "old").ok());
  ASSERT_TRUE(folder.Write("plan.json", "new").ok());
  EXPECT_EQ(Content(folder.File("plan.json")), "new");
  const Result<void> failed = folder.Write("no/such/file", "x");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
}

TEST_F(RunFolderTest, MetricsGoOnAfterTheCheckpoint) {
  int64_t at_checkpoint = 0;
  {
    RunFolder folder = MustOpen();
    ASSERT_TRUE(folder.StartMetrics(0).ok());
    ASSERT_TRUE(folder.AppendMetrics("one").ok());
    at_checkpoint = folder.metrics_bytes();
    ASSERT_TRUE(folder.AppendMetrics("will be written again").ok());
  }
  EXPECT_EQ(at_checkpoint, 4);
  RunFolder folder = MustOpen();
  ASSERT_TRUE(folder.StartMetrics(at_checkpoint).ok());
  ASSERT_TRUE(folder.AppendMetrics("two").ok());
  EXPECT_EQ(Content(folder.File("metrics.jsonl")), "one\ntwo\n");
  EXPECT_EQ(folder.metrics_bytes(), 8);
}

TEST_F(RunFolderTest, MetricsOfAnEarlierRunAreDropped) {
  RunFolder folder = MustOpen();
  Put(folder.File("metrics.jsonl"), "old\n");
  ASSERT_TRUE(folder.StartMetrics(0).ok());
  EXPECT_EQ(Content(folder.File("metrics.jsonl")), "");
}

TEST_F(RunFolderTest, ALostTailLeavesNoHole) {
  RunFolder folder = MustOpen();
  Put(folder.File("metrics.jsonl"), "one\n");
  ASSERT_TRUE(folder.StartMetrics(1000).ok());
  ASSERT_TRUE(folder.AppendMetrics("two").ok());
  EXPECT_EQ(Content(folder.File("metrics.jsonl")), "one\ntwo\n");
}

TEST_F(RunFolderTest, MetricsOnAFullDisk) {
  RunFolder folder = MustOpen();
  ASSERT_TRUE(folder.StartMetrics(0).ok());
  const ScopedFileSizeLimit limit(2);
  const Result<void> failed = folder.AppendMetrics("longer");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(failed.error().message.find(folder.File("metrics.jsonl")), 0U);
}

TEST_F(RunFolderTest, MetricsCannotBeOpened) {
  RunFolder folder = MustOpen();
  std::filesystem::create_directory(folder.File("metrics.jsonl"));
  EXPECT_FALSE(folder.StartMetrics(0).ok());
}

TEST_F(RunFolderTest, IsNamedAfterAModelFile) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  config_.out.clear();
  config_.model = "nets/mine.toml";
  config_.data = "shapes:4,4";
  EXPECT_EQ(MustOpen().path(), "runs/mine-shapes-1");
  std::filesystem::current_path(before);
}

TEST_F(RunFolderTest, KeepsTheModelFile) {
  config_.model = "nets/mine.toml";
  ASSERT_TRUE(MustOpen().KeepModelFile(config_.model, "first").ok());
  // Nothing was begun with it.
  ASSERT_TRUE(MustOpen().KeepModelFile(config_.model, "second").ok());
  EXPECT_EQ(Content(config_.out + "/model.toml"), "second");
  Start();
  config_.resume = true;
  EXPECT_TRUE(MustOpen().KeepModelFile(config_.model, "second").ok());
  const auto changed = MustOpen().KeepModelFile(config_.model, "third");
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(changed.error().message,
            "--resume " + config_.out +
                ": nets/mine.toml is not what it was when this run was started; --model " +
                config_.out + "/model.toml goes on with the network as it was");
  EXPECT_EQ(Content(config_.out + "/model.toml"), "second");
}

TEST_F(RunFolderTest, ModelFilesMayMove) {
  config_.model = "nets/mine.toml";
  Start();
  config_.resume = true;
  config_.model = "elsewhere/renamed.toml";
  MustOpen();
  config_.model = "wrn-28-2";
  EXPECT_NE(Refusal().find("--model was 'nets/mine.toml' and is now 'wrn-28-2'"),
            std::string::npos);
}

TEST_F(RunFolderTest, SettingsOfARunNameItsOwnModelFile) {
  config_.model = "nets/mine.toml";
  config_.batch = 7;
  Start();
  TrainConfig read;
  ASSERT_TRUE(ReadRunConfig(config_.out, read).ok());
  EXPECT_EQ(read.model, config_.out + "/model.toml");
  EXPECT_EQ(read.batch, 7);
  config_.out = folder_ + "/other";
  config_.model = "wrn-10-1";
  Start();
  ASSERT_TRUE(ReadRunConfig(config_.out, read).ok());
  EXPECT_EQ(read.model, "wrn-10-1");
  EXPECT_FALSE(ReadRunConfig(folder_ + "/none", read).ok());
}

}  // namespace
}  // namespace thimble
