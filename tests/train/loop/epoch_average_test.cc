#include "thimble/train/loop/epoch_average.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <functional>
#include <map>

#include "tests/train/file_fixture.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/loop/trainer.h"
#include "thimble/train/run_folder/checkpoint.h"
#include "thimble/train/weights/average_weights.h"

namespace thimble {
namespace {

using ::testing::HasSubstr;

TEST(LastEpochs, AreAtMostAllOfTheRun) {
  EXPECT_EQ(LastEpochs(3, 10).first, 8);
  EXPECT_EQ(LastEpochs(3, 10).count(), 3);
  EXPECT_TRUE(LastEpochs(3, 10).Has(10));
  EXPECT_FALSE(LastEpochs(3, 10).Has(7));
  EXPECT_EQ(LastEpochs(3, 2).first, 1);
  EXPECT_EQ(LastEpochs(3, 2).count(), 2);
  EXPECT_FALSE(LastEpochs(0, 10).Has(10));
  EXPECT_EQ(LastEpochs(0, 10).count(), 0);
}

struct EpochListener final : TrainObserver {
  void OnStep(const Progress& progress) override {
    if (progress.step == stop_after) raise(SIGTERM);
  }
  void OnEpoch(const EpochReport& report) override { averaged.push_back(report.averaged_epochs); }

  int64_t stop_after = 0;
  std::vector<int64_t> averaged;
};

using Tensors = std::map<std::string, std::vector<std::byte>>;

Tensors TensorsIn(const std::string& path) {
  const auto file = SafetensorsReader::Open(path);
  THIMBLE_CHECK(file.ok(), "{}", file.error().message);
  Tensors tensors;
  for (const TensorEntry& entry : file->tensors()) {
    std::vector<std::byte>& bytes = tensors[entry.name];
    bytes.resize(static_cast<size_t>(entry.end - entry.begin));
    THIMBLE_CHECK(file->Read(entry, bytes).ok());
  }
  return tensors;
}

class EpochAverageTest : public FileFixture {
 protected:
  EpochAverageTest() {
    config_.out = folder_ + "/run";
    config_.epochs = 4;
    config_.average = 3;
  }

  Result<TrainSummary> TryTrain(int64_t stop_after = 0) {
    listener_ = {};
    listener_.stop_after = stop_after;
    return Train(config_, BuiltinOps(), listener_);
  }
  void MustTrain(int64_t stop_after = 0) {
    const auto summary = TryTrain(stop_after);
    ASSERT_TRUE(summary.ok()) << summary.error().message;
    EXPECT_EQ(summary->planned_peak_bytes, summary->measured_peak_bytes);
  }
  std::string File(const std::string& name) const { return config_.out + "/" + name; }
  Tensors Weights() const { return TensorsIn(File("weights.safetensors")); }
  Tensors Trained() const { return TensorsIn(CheckpointPath(CheckpointFolder(config_.out))); }

  // The mean of epochs [first, last] as their files have them.
  Tensors MeanOf(int64_t first, int64_t last) const {
    std::vector<std::string> paths;
    for (int64_t epoch = first; epoch <= last; ++epoch) {
      paths.push_back(File(EpochWeightsName(epoch)));
    }
    THIMBLE_CHECK(AverageWeights(paths, folder_ + "/mean", {}).ok());
    return TensorsIn(folder_ + "/mean");
  }

  TrainConfig config_ = TinyConfig();
  EpochListener listener_;
};

TEST_F(EpochAverageTest, TheRunEndsWithTheAverage) {
  MustTrain();
  EXPECT_EQ(listener_.averaged, (std::vector<int64_t>{0, 0, 0, 3}));
  EXPECT_FALSE(std::filesystem::exists(File(EpochWeightsName(1))));
  EXPECT_EQ(Weights(), MeanOf(2, 4));
  EXPECT_NE(Weights(), MeanOf(4, 4));
  EXPECT_THAT(Content(File("metrics.jsonl")), HasSubstr("\"averaged_epochs\":3"));
}

TEST_F(EpochAverageTest, TrainingItselfDoesNotChange) {
  MustTrain();
  const Tensors averaging = Trained();
  config_.out += "2";
  config_.average = 0;
  MustTrain();
  EXPECT_EQ(Trained(), averaging);
  EXPECT_FALSE(averaging.empty());
}

TEST_F(EpochAverageTest, StoppedAndContinued) {
  MustTrain();
  const Tensors expected = Weights();
  config_.out += "2";
  MustTrain(/*stop_after=*/10);  // in the last epoch
  config_.resume = true;
  MustTrain();
  EXPECT_EQ(Weights(), expected);
}

TEST_F(EpochAverageTest, ALongerRunAveragesItsOwnLastEpochs) {
  MustTrain();
  config_.resume = config_.extend = true;
  config_.epochs = 5;
  MustTrain();
  EXPECT_EQ(Weights(), MeanOf(3, 5));
}

TEST_F(EpochAverageTest, MoreEpochsThanThereAre) {
  config_.epochs = 2;
  config_.average = 10;
  MustTrain();
  EXPECT_EQ(listener_.averaged.back(), 2);
  EXPECT_EQ(Weights(), MeanOf(1, 2));
}

TEST_F(EpochAverageTest, WithSparseWeightsIn16Bits) {
  config_.levers = {{"sparsity", "0.5"}, {"precision", "fp16"}};
  MustTrain();
  const Tensors averaging = Trained();
  EXPECT_NE(Weights(), MeanOf(4, 4));
  config_.out += "2";
  config_.average = 0;
  MustTrain();
  EXPECT_EQ(Trained(), averaging);
}

TEST_F(EpochAverageTest, AFileThatIsMissing) {
  MustTrain(/*stop_after=*/10);
  std::filesystem::remove(File(EpochWeightsName(2)));
  config_.resume = true;
  const auto summary = TryTrain();
  ASSERT_FALSE(summary.ok());
  EXPECT_THAT(summary.error().message, HasSubstr("--average: " + File(EpochWeightsName(2))));
}

TEST_F(EpochAverageTest, OverwritingRemovesTheFiles) {
  MustTrain();
  config_.epochs = 1;
  config_.average = 0;
  config_.overwrite = true;
  MustTrain();
  for (int64_t epoch = 1; epoch <= 4; ++epoch) {
    EXPECT_FALSE(std::filesystem::exists(File(EpochWeightsName(epoch)))) << epoch;
  }
}

}  // namespace
}  // namespace thimble
