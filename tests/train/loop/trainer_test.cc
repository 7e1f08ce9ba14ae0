#include "thimble/train/loop/trainer.h"

#include <fmt/format.h>
#include <signal.h>

#include <functional>
#include <limits>
#include <map>

#include "tests/train/file_fixture.h"
#include "tests/train/tiny_run.h"
#include "thimble/base/json.h"
#include "thimble/base/sealed_text.h"
#include "thimble/base/version.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/train/options/command_text.h"
#include "thimble/train/options/options.h"
#include "thimble/train/run_folder/checkpoint.h"
#include "thimble/train/run_folder/run_folder.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

// Records the events it receives; may run a function at the start or after a step.
class Listener final : public TrainObserver {
 public:
  void OnStart(const TrainingProgram& program, const std::string& /*run_folder*/) override {
    arena_bytes = program.program.arena_bytes;
    if (at_start) at_start();
  }
  void OnStep(const Progress& progress) override {
    steps.push_back(progress.step);
    if (after_step) after_step(progress.step);
  }
  void OnEpoch(const EpochReport& report) override { epochs.push_back(report.epoch); }
  void OnMessage(const std::string& line) override { messages += line + "\n"; }
  void OnFinish(const TrainSummary& summary) override {
    finished_folders.push_back(summary.run_folder);
    summary_at_finish = Content(summary.run_folder + "/summary.json");
  }

  std::function<void()> at_start;
  std::function<void(int64_t)> after_step;
  size_t arena_bytes = 0;
  std::vector<int64_t> steps;
  std::vector<int64_t> epochs;
  std::string messages;
  std::vector<std::string> finished_folders;
  std::string summary_at_finish;
};

class TrainerTest : public FileFixture {
 protected:
  TrainerTest() {
    config_.out = folder_ + "/run";
    config_.epochs = 2;
  }
  ~TrainerTest() override { EXPECT_TRUE(PinSimdTarget("auto").ok()); }

  Result<TrainSummary> TryTrain(Listener& listener) {
    return Train(config_, BuiltinOps(), listener);
  }
  TrainSummary MustTrain() {
    Listener listener;
    return MustTrain(listener);
  }
  TrainSummary MustTrain(Listener& listener) {
    auto summary = TryTrain(listener);
    THIMBLE_CHECK(summary.ok(), "{}", summary.error().message);
    EXPECT_EQ(summary->planned_peak_bytes, summary->measured_peak_bytes);
    return std::move(summary).value();
  }
  Error Refusal() {
    Listener listener;
    const auto summary = TryTrain(listener);
    return summary.ok() ? Failed("was accepted") : summary.error();
  }
  std::string Weights() const { return Content(config_.out + "/weights.safetensors"); }
  CheckpointInfo Checkpoint() const { return **ReadCheckpointInfo(CheckpointFolder(config_.out)); }

  TrainConfig config_ = TinyConfig();
};

TEST_F(TrainerTest, TellsAndKeepsWhatItDoes) {
  Listener listener;
  const TrainSummary summary = MustTrain(listener);
  EXPECT_TRUE(summary.finished);
  EXPECT_EQ(summary.steps, 6);
  EXPECT_EQ(listener.steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(listener.epochs, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(static_cast<size_t>(summary.arena_bytes), listener.arena_bytes);
  EXPECT_EQ(Content(config_.out + "/summary.json"), summary.json);
  EXPECT_EQ(listener.finished_folders, std::vector<std::string>{config_.out});
  EXPECT_EQ(listener.summary_at_finish, summary.json);
  EXPECT_EQ(summary.command, CommandOf(config_));
  EXPECT_EQ(summary.version, Version());
  EXPECT_EQ(Checkpoint().step, 6);
  EXPECT_EQ(Checkpoint().simd_target, ActiveSimdTarget());
  TrainConfig saved;
  ASSERT_TRUE(ReadConfigFile(config_.out + "/config.toml", saved).ok());
  EXPECT_EQ(ToToml(saved), ToToml(config_));
}

TEST_F(TrainerTest, StoppedBeforeTheFirstStep) {
  const TrainSummary whole = MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  Listener listener;
  listener.at_start = [] { raise(SIGTERM); };
  const TrainSummary stopped = MustTrain(listener);
  EXPECT_FALSE(stopped.finished);
  EXPECT_EQ(stopped.steps, 0);
  EXPECT_EQ(Checkpoint().step, 0);
  EXPECT_EQ(listener.messages, "stopped by SIGTERM at step 0 of 6; continue with: " +
                                   ContinueCommand(config_, config_.out) + "\n");
  EXPECT_EQ(stopped.stop_signal, SIGTERM);
  EXPECT_EQ(stopped.test_accuracy, std::nullopt);
  EXPECT_EQ(stopped.best_accuracy, std::nullopt);
  EXPECT_FALSE(Weights().empty());
  config_.resume = true;
  EXPECT_EQ(MustTrain().test_loss, whole.test_loss);
  EXPECT_TRUE(Weights() == expected);
}

TEST_F(TrainerTest, StoppedWithinAnEpochGoesOnBitForBit) {
  const TrainSummary whole = MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  Listener listener;
  listener.after_step = [](int64_t step) {
    if (step == 2) raise(SIGINT);
  };
  EXPECT_EQ(MustTrain(listener).steps, 2);
  config_.resume = true;
  Listener resumed;
  const TrainSummary rest = MustTrain(resumed);
  EXPECT_EQ(resumed.steps, (std::vector<int64_t>{3, 4, 5, 6}));
  EXPECT_EQ(resumed.messages, "resuming at step 2\n");
  EXPECT_EQ(rest.train_loss, whole.train_loss);
  EXPECT_EQ(rest.train_accuracy, whole.train_accuracy);
  EXPECT_EQ(rest.best_accuracy, whole.best_accuracy);
  EXPECT_TRUE(Weights() == expected);
}

// Every file of the run, by its name.
std::map<std::string, std::string> FilesOf(const std::string& run) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run)) {
    if (entry.is_regular_file()) files[entry.path()] = Content(entry.path());
  }
  return files;
}

TEST_F(TrainerTest, AFinishedRunIsNotTouched) {
  const TrainSummary first = MustTrain();
  const auto files = FilesOf(config_.out);
  config_.resume = true;
  config_.threads = 2;
  Listener listener;
  const TrainSummary again = MustTrain(listener);
  EXPECT_TRUE(FilesOf(config_.out) == files);
  EXPECT_EQ(again.json, first.json);
  EXPECT_EQ(again.measured_peak_bytes, first.measured_peak_bytes);
  EXPECT_TRUE(listener.steps.empty());
  EXPECT_TRUE(listener.finished_folders.empty());
  EXPECT_EQ(listener.messages,
            "this run has done all its 6 steps: nothing to do; to make it longer, add --extend "
            "and more --epochs or --steps\n");
}

TEST_F(TrainerTest, AnotherLengthIsRefused) {
  MustTrain();
  const auto files = FilesOf(config_.out);
  config_.resume = true;
  config_.epochs = 1;
  const std::string start = "--resume " + config_.out + ": this run has 6 steps, but ";
  EXPECT_EQ(Refusal().message,
            start + "3 were requested: a run can be made longer, but not shorter");
  config_.extend = true;
  EXPECT_EQ(Refusal().message,
            start + "3 were requested: a run can be made longer, but not shorter");
  config_.extend = false;
  config_.epochs = 3;
  EXPECT_EQ(Refusal().message, start + "9 were requested: add --extend to make it longer");
  config_.epochs = 1;
  config_.steps = 6;  // the same length in other words
  MustTrain();
  EXPECT_TRUE(FilesOf(config_.out) == files);
}

TEST_F(TrainerTest, ExtendingSaysWhatBecomesOfTheSchedule) {
  config_.schedule = "cosine";
  MustTrain();
  config_.resume = config_.extend = true;
  config_.epochs = 4;
  Listener listener;
  MustTrain(listener);
  EXPECT_EQ(listener.messages.find(
                "extending this run from 6 to 12 steps; the learning rate, which fell to 0 over 6 "
                "steps, now falls over 12: 0.05 at step 7 instead of 0; this is not the same as "
                "one run of 12 steps\n"),
            0U)
      << listener.messages;
}

TEST_F(TrainerTest, StepsThatCannotBeCounted) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  config_.epochs = kHuge;
  EXPECT_EQ(Refusal().message.find("--epochs 9223372036854775807: too long: a run has fewer"), 0U);
  config_.steps = kHuge;
  config_.microbatch = 2;
  EXPECT_EQ(Refusal().message.find("--steps 9223372036854775807: too long: a run has fewer"), 0U);
  EXPECT_FALSE(std::filesystem::exists(config_.out));
}

TEST_F(TrainerTest, OverwritingStartsAnew) {
  config_.learning_rate = 0.01;
  MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  config_.learning_rate = 0.1;
  MustTrain();
  config_.learning_rate = 0.01;
  EXPECT_NE(Refusal().message.find("--overwrite"), std::string::npos);
  config_.overwrite = true;
  MustTrain();
  EXPECT_TRUE(Weights() == expected);
}

TEST_F(TrainerTest, AFolderDeletedWhileTheRunUsesIt) {
  Listener listener;
  listener.after_step = [&](int64_t step) {
    if (step == 2) std::filesystem::remove_all(config_.out);
  };
  const auto summary = TryTrain(listener);
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().message,
            config_.out + ": the run folder was deleted or moved while the run used it");
  EXPECT_FALSE(std::filesystem::exists(config_.out));
}

TEST_F(TrainerTest, ADamagedLogIsNotContinued) {
  config_.checkpoint_every = 2;
  Listener listener;
  listener.after_step = [](int64_t step) {
    if (step == 4) raise(SIGTERM);
  };
  MustTrain(listener);
  const std::string path = config_.out + "/metrics.jsonl";
  std::string lines = Content(path);
  lines[10] = static_cast<char>(lines[10] ^ 1);
  Put(path, lines);
  config_.resume = true;
  EXPECT_EQ(Refusal().message.find(path + ": is damaged or was edited"), 0U);
  std::filesystem::remove(path);
  MustTrain();
}

TEST_F(TrainerTest, ResumingWithMoreEpochsIsOneLongerRun) {
  config_.epochs = 3;
  MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  config_.epochs = 1;
  MustTrain();
  config_.epochs = 3;
  config_.resume = config_.extend = true;
  EXPECT_EQ(MustTrain().steps, 9);
  EXPECT_TRUE(Weights() == expected);
  TrainConfig saved;
  ASSERT_TRUE(ReadConfigFile(config_.out + "/config.toml", saved).ok());
  EXPECT_EQ(saved.epochs, 3);
}

TEST_F(TrainerTest, MoreStepsAfterAnEndWithinAnEpoch) {
  const TrainSummary whole = MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  config_.steps = 4;
  Listener listener;
  MustTrain(listener);
  EXPECT_EQ(listener.epochs, (std::vector<int64_t>{1, 2}));  // the second one is cut short
  config_.steps = 6;
  config_.resume = config_.extend = true;
  EXPECT_EQ(MustTrain().train_loss, whole.train_loss);
  EXPECT_TRUE(Weights() == expected);
}

TEST_F(TrainerTest, NoStepsAtAll) {
  config_.epochs = 0;
  const TrainSummary summary = MustTrain();
  EXPECT_TRUE(summary.finished);
  EXPECT_EQ(summary.steps, 0);
  EXPECT_FALSE(Weights().empty());
}

// The plan depends on the SIMD target (sizes of panels), so that must be chosen first.
TEST_F(TrainerTest, AResumedRunKeepsItsSimdTarget) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one SIMD target only";
  config_.simd = targets.back();
  MustTrain();
  const std::string expected = Weights();
  config_.out += "2";
  config_.epochs = 1;
  Listener first;
  MustTrain(first);
  config_.simd = "auto";
  config_.epochs = 2;
  config_.resume = config_.extend = true;
  Listener second;
  const TrainSummary summary = MustTrain(second);
  EXPECT_EQ(summary.simd, targets.back());
  EXPECT_EQ(second.arena_bytes, first.arena_bytes);
  EXPECT_TRUE(Weights() == expected);
  EXPECT_EQ(
      second.messages,
      "extending this run from 3 to 6 steps; the learning rate is the same as in one run of this "
      "length\nresuming at step 3\n");
}

TEST_F(TrainerTest, AnotherSimdTargetIsSaidAloud) {
  const std::vector<std::string> targets = SupportedSimdTargets();
  if (targets.size() < 2) GTEST_SKIP() << "this machine has one SIMD target only";
  config_.simd = targets.back();
  MustTrain();
  config_.simd = targets.front();
  config_.resume = config_.extend = true;
  config_.epochs = 3;
  Listener listener;
  EXPECT_EQ(MustTrain(listener).simd, targets.front());
  EXPECT_EQ(listener.messages.find("the checkpoint was made with " + targets.back()), 0U);
}

// Four normal steps, then one that diverges because the rate has risen.
TEST_F(TrainerTest, DivergenceKeepsTheLastGoodCheckpoint) {
  config_.epochs = 9;
  config_.checkpoint_every = 1;
  config_.schedule = "steps:1.33:1e60";
  config_.learning_rate = 0.01;
  const Error error = Refusal();
  EXPECT_EQ(error.kind, ErrorKind::kFailed);
  EXPECT_NE(error.message.find("after step 5: training has diverged; the last good checkpoint, "
                               "of step 4, is kept; start again with a lower --lr"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(Checkpoint().step, 4);
  TinyRun run(config_);
  const auto tensors = PersistentTensors(*run.executor, TensorSet::kCheckpoint);
  ASSERT_TRUE(LoadCheckpoint(CheckpointFolder(config_.out), "wrn-10-1", tensors).ok());
  EXPECT_EQ(FindNotFinite(tensors), "");
}

// Weights that are finite, but so large that the next loss is not.
TEST_F(TrainerTest, DivergenceSeenByTheNextLossReturnsToTheCheckpointBefore) {
  config_.epochs = 9;
  config_.checkpoint_every = 1;
  config_.schedule = "steps:1.33:1e38";
  config_.learning_rate = 0.01;
  const Error error = Refusal();
  EXPECT_NE(error.message.find("at step 6: training has diverged; the last good checkpoint, of "
                               "step 4, is kept"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(Checkpoint().step, 4);
}

TEST_F(TrainerTest, DivergenceSeenByTheEvaluationOnly) {
  config_.batch = 10;  // one step per epoch: its own loss comes before the update
  config_.epochs = 1;
  config_.learning_rate = 1e30;
  const Error error = Refusal();
  EXPECT_EQ(error.kind, ErrorKind::kFailed);
  EXPECT_NE(error.message.find("training has diverged; there was no checkpoint yet"),
            std::string::npos)
      << error.message;
  EXPECT_EQ(*ReadCheckpointInfo(CheckpointFolder(config_.out)), std::nullopt);
}

TEST_F(TrainerTest, WrongInputLeavesNoRunBehind) {
  const auto expect = [&](const std::string& reason) {
    const Error error = Refusal();
    EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
    EXPECT_FALSE(std::filesystem::exists(config_.out));
  };
  const TrainConfig good = config_;
  config_.model = "wrn-9-1";
  expect("depth 9 is impossible");
  config_ = good;
  config_.data = "shapes:0,1";
  expect("0 images, expected");
  config_ = good;
  config_.batch = 0;
  expect("--batch 0");
  config_ = good;
  config_.budget_bytes = 1000;
  expect("does not fit");
  config_ = good;
  config_.simd = "mmx";
  expect("--simd mmx");
  config_ = good;
  config_.validation = 10;
  expect("cannot hold out 10 of 10");
  config_ = good;
  config_.init = folder_ + "/none.safetensors";
  expect("none.safetensors");
}

TEST_F(TrainerTest, ACheckpointThatContradictsItself) {
  MustTrain();
  TinyRun run(config_);
  const std::string folder = CheckpointFolder(config_.out);
  const std::string path = CheckpointPath(folder);
  const auto tensors = PersistentTensors(*run.executor, TensorSet::kCheckpoint);
  CheckpointInfo info = *LoadCheckpoint(folder, "wrn-10-1", tensors);
  info.step = 5;
  ASSERT_TRUE(SaveCheckpoint(folder, info, tensors).ok());
  config_.resume = true;
  const Error error = Refusal();
  EXPECT_EQ(error.kind, ErrorKind::kBadInput);
  EXPECT_EQ(error.message, path + ": records step 5 in its metadata, but step 6 in its progress");
  info.step = 7;
  ASSERT_TRUE(SaveCheckpoint(folder, info, tensors).ok());
  EXPECT_EQ(Refusal().message, path + ": is the checkpoint of step 7, but the run has 6 steps");
  info.settings_json = "{}";
  ASSERT_TRUE(SaveCheckpoint(folder, info, tensors).ok());
  EXPECT_EQ(Refusal().message.find(path + ": settings: expected"), 0U);
}

// A network of one layer.
std::string ModelText(int classes) {
  return fmt::format(
      "layers = [{{ type = \"global_avg_pool\" }}, {{ type = \"linear\", name = \"fc\", features = "
      "\"$classes\" }}]\n[input]\nheight = 32\nwidth = 32\nchannels = 3\nclasses = {}\n",
      classes);
}

class ModelFileTrainerTest : public TrainerTest {
 protected:
  ModelFileTrainerTest() {
    config_.model = folder_ + "/net.toml";
    Put(config_.model, ModelText(10));
  }
};

TEST_F(ModelFileTrainerTest, TheRunKeepsTheFile) {
  MustTrain();
  EXPECT_EQ(WithoutSeal(Content(config_.out + "/model.toml")), ModelText(10));
  TrainConfig saved;
  ASSERT_TRUE(ReadConfigFile(config_.out + "/config.toml", saved).ok());
  EXPECT_EQ(saved.model, config_.model);
  const auto checkpoint = ReadCheckpointInfo(CheckpointFolder(config_.out));
  ASSERT_TRUE(checkpoint.ok() && checkpoint->has_value());
  EXPECT_EQ((*checkpoint)->model, "net");
}

TEST_F(ModelFileTrainerTest, GoesOnWithTheCopyBitForBit) {
  MustTrain();
  const std::string weights = Content(config_.out + "/weights.safetensors");
  const std::string whole = config_.out;
  config_.out = folder_ + "/parts";
  config_.epochs = 1;
  MustTrain();
  Put(config_.model, ModelText(10) + "# another comment\n");
  config_.epochs = 2;
  config_.resume = config_.extend = true;
  Listener listener;
  const auto changed = TryTrain(listener);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(changed.error().message.find("net.toml has changed since"), std::string::npos);
  config_.model = config_.out + "/model.toml";
  EXPECT_EQ(MustTrain().steps, 6);
  EXPECT_TRUE(Content(config_.out + "/weights.safetensors") == weights);
}

TEST_F(ModelFileTrainerTest, OtherDataIsRefused) {
  Put(config_.model, ModelText(7));
  Listener listener;
  const auto summary = TryTrain(listener);
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(
      summary.error().message.find("net.toml:2:1: [input] is 32 x 32 images of 3 channels in 7 "
                                   "classes, the data has 32 x 32 images of 3 channels in 10"),
      std::string::npos)
      << summary.error().message;
  EXPECT_FALSE(std::filesystem::exists(config_.out));
}

TEST_F(TrainerTest, InPartsGoesOnBitForBit) {
  config_.microbatch = 3;
  config_.augment = "crop-flip";
  const TrainSummary whole = MustTrain();
  const std::string expected = Weights();
  EXPECT_EQ(whole.heap_calls_in_steps, 0);
  config_.out += "2";
  Listener listener;
  listener.after_step = [](int64_t step) {
    if (step == 2) raise(SIGINT);
  };
  EXPECT_EQ(MustTrain(listener).steps, 2);
  config_.resume = true;
  config_.threads = 2;
  const TrainSummary rest = MustTrain();
  EXPECT_EQ(rest.train_loss, whole.train_loss);
  EXPECT_EQ(rest.test_loss, whole.test_loss);
  EXPECT_TRUE(Weights() == expected);
}

TEST_F(TrainerTest, ResumingWithOtherPartsIsRefused) {
  config_.microbatch = 2;
  MustTrain();
  config_.resume = true;
  config_.microbatch = 1;
  EXPECT_EQ(
      Refusal().message,
      fmt::format("--resume {}: this run was started with different settings: --microbatch was "
                  "'2' and is now '1'",
                  config_.out));
  config_.microbatch = 5;
  EXPECT_EQ(Refusal().message, "--microbatch 5: must be from 1 to the batch size, 4");
}

TEST_F(TrainerTest, StoppedBeforeTheFirstPart) {
  config_.microbatch = 2;
  Listener listener;
  listener.at_start = [] { raise(SIGTERM); };
  EXPECT_EQ(MustTrain(listener).steps, 0);  // unwritten accumulators are counted
}

}  // namespace
}  // namespace thimble
