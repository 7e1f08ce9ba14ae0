#include "thimble/train/run_folder/run_folder.h"

#include <optional>

#include "tests/train/file_fixture.h"
#include "thimble/base/sealed_text.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/checkpoint.h"

namespace thimble {
namespace {

class RunFolderTest : public FileFixture {
 protected:
  RunFolderTest() { config_.out = folder_ + "/a/run"; }

  // Leaves a run behind, as training does.
  void Start() const {
    ASSERT_TRUE(MustOpen().Write("config.toml", SealToml(ToToml(config_))).ok());
  }
  void PutCheckpoint() const {
    std::filesystem::create_directories(CheckpointFolder(config_.out));
    Put(CheckpointPath(CheckpointFolder(config_.out)), "something");
  }
  RunFolder MustOpen() const {
    auto folder = RunFolder::Open(config_);
    THIMBLE_CHECK(folder.ok(), "{}", folder.error().message);
    return std::move(folder).value();
  }
  RunFolder MustOpenToResume() {
    config_.resume = true;
    RunFolder folder = MustOpen();
    config_.resume = false;
    return folder;
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
  {
    const RunFolder first = MustOpen();
    EXPECT_EQ(first.path(), "runs/wrn-10-1-shapes-1");
    const RunFolder second = MustOpen();
    EXPECT_EQ(second.path(), "runs/wrn-10-1-shapes-2");
    config_.model = "wrn-10-1:group-norm=8,dropout=0.3";
    EXPECT_EQ(MustOpen().path(), "runs/wrn-10-1-group-norm-8-dropout-0.3-shapes-1");
  }
  EXPECT_FALSE(std::filesystem::exists("runs"));  // empty folders were removed
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
  EXPECT_EQ(Refusal(),
            "--out " + config_.out +
                ": already contains a run; add --resume to continue it or --overwrite to "
                "replace it, or choose another folder");
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
  EXPECT_EQ(Refusal(),
            "--resume " + config_.out +
                ": this run was started with different settings: --lr was '0.1' and is now "
                "'0.25'");
}

TEST_F(RunFolderTest, DamagedConfiguration) {
  Start();
  Put(config_.out + "/config.toml", "model = \"wrn-28-2\"\nbatch = \n");
  config_.resume = true;
  EXPECT_EQ(Refusal().find(config_.out + "/config.toml:2: "), 0U) << Refusal();
}

TEST_F(RunFolderTest, OtherSettingsOfARunWithACheckpointAreItsBusiness) {
  Start();
  PutCheckpoint();
  config_.resume = true;
  config_.learning_rate = 0.25;
  MustOpen();
}

TEST_F(RunFolderTest, ACheckpointAloneIsARunToo) {
  PutCheckpoint();
  EXPECT_NE(Refusal().find("already contains a run"), std::string::npos);
}

TEST_F(RunFolderTest, AFlippedBitInTheConfiguration) {
  Start();
  std::string text = Content(config_.out + "/config.toml");
  const size_t batch = text.find("batch = 100");
  ASSERT_NE(batch, std::string::npos);
  text[batch + 8] = '3';
  Put(config_.out + "/config.toml", text);
  config_.resume = true;
  EXPECT_EQ(Refusal().find(config_.out + "/config.toml: is damaged or was edited"), 0U);
  TrainConfig read;
  EXPECT_FALSE(ReadRunConfig(config_.out, read).ok());
}

TEST_F(RunFolderTest, IsUsedByOneAtATime) {
  std::optional<RunFolder> first = MustOpen();
  const auto second = RunFolder::Open(config_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(second.error().message,
            "--out " + config_.out + ": another process is using this run folder");
  EXPECT_TRUE(std::filesystem::is_directory(config_.out));
  first.reset();
  MustOpen();
}

TEST_F(RunFolderTest, FailedStartsLeaveNothingBehind) {
  { const RunFolder folder = MustOpen(); }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a"));
  std::filesystem::create_directory(folder_ + "/a");
  { const RunFolder folder = MustOpen(); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/a"));
  Start();
  EXPECT_TRUE(std::filesystem::exists(config_.out + "/config.toml"));
}

TEST_F(RunFolderTest, NoticesThatItIsGone) {
  const RunFolder folder = MustOpen();
  EXPECT_TRUE(folder.CheckStillThere().ok());
  std::filesystem::remove_all(config_.out);
  const std::string gone =
      config_.out + ": the run folder was deleted or moved while the run used it";
  EXPECT_EQ(folder.CheckStillThere().error().message, gone);
  std::filesystem::create_directories(config_.out);  // a different folder
  EXPECT_EQ(folder.CheckStillThere().error().message, gone);
  EXPECT_EQ(folder.Write("plan.json", "x").error().kind, ErrorKind::kFailed);
}

TEST_F(RunFolderTest, OverwritingRemovesTheRunAndNothingElse) {
  Start();
  PutCheckpoint();
  Put(config_.out + "/notes.txt", "mine");
  Put(config_.out + "/metrics.jsonl", "{}");
  config_.overwrite = true;
  const RunFolder folder = MustOpen();
  EXPECT_TRUE(std::filesystem::exists(folder.File("config.toml")));  // only Clear removes files
  ASSERT_TRUE(folder.Clear().ok());
  EXPECT_FALSE(std::filesystem::exists(folder.File("config.toml")));
  EXPECT_FALSE(std::filesystem::exists(folder.File("metrics.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(CheckpointPath(folder.checkpoint_folder())));
  EXPECT_EQ(Content(folder.File("notes.txt")), "mine");
}

TEST_F(RunFolderTest, CannotBe) {
  config_.out.clear();
  config_.resume = true;
  EXPECT_EQ(Refusal(), "--resume requires --out FOLDER");
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
  ASSERT_TRUE(MustOpen().KeepModelFile("first").ok());
  // No run was started with it.
  EXPECT_TRUE(MustOpen().CheckModelFile(config_.model, "second").ok());
  ASSERT_TRUE(MustOpen().KeepModelFile("second").ok());
  const std::string kept = Content(config_.out + "/model.toml");
  EXPECT_EQ(WithoutSeal(kept), "second\n");
  Start();
  config_.resume = true;
  EXPECT_TRUE(MustOpen().CheckModelFile(config_.model, "second").ok());
  EXPECT_TRUE(MustOpen().CheckModelFile(config_.model, kept).ok());  // the copy itself
  const auto changed = MustOpen().CheckModelFile(config_.model, "third");
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(changed.error().message,
            "--resume " + config_.out +
                ": nets/mine.toml has changed since this run was started; to continue with the "
                "original network, use --model " +
                config_.out + "/model.toml");
  EXPECT_EQ(Content(config_.out + "/model.toml"), kept);
  Put(config_.out + "/model.toml", "sec0nd" + kept.substr(6));
  EXPECT_EQ(MustOpen()
                .CheckModelFile(config_.model, "second")
                .error()
                .message.find(config_.out + "/model.toml: is damaged or was edited"),
            0U);
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
  ASSERT_TRUE(MustOpenToResume().KeepModelFile("layers = []").ok());
  TrainConfig read;
  ASSERT_TRUE(ReadRunConfig(config_.out, read).ok());
  EXPECT_EQ(read.model, config_.out + "/model.toml");
  Put(config_.out + "/model.toml", SealToml("layers = []").replace(0, 1, "m"));
  EXPECT_EQ(ReadRunConfig(config_.out, read).error().message.find(config_.out + "/model.toml: "),
            0U);
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
