// Training a network that has no built-in name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/trainer.h"

namespace thimble {
namespace {

using testing::HasSubstr;

// One convolution and a classifier with this many scores more than there are classes.
ModelFactory TinyNetwork(int64_t extra_scores) {
  return [=](const ImageSpec& images) -> Result<ImageClassifier> {
    return ImageClassifier{
        "tiny", images, [scores = images.classes + extra_scores](NetworkBuilder& net, ValueId x) {
          x = net.Conv("conv", x, {.out_channels = 4, .kernel = 3, .stride = 4, .padding = 1});
          return net.Linear("fc", net.GlobalAveragePool(net.Relu(x)), scores);
        }};
  };
}

class OwnNetwork : public testing::Test {
 protected:
  OwnNetwork() {
    config_.data = "shapes:20,10";
    config_.batch = 8;
    config_.steps = 3;
    config_.threads = 2;
    config_.out = testing::TempDir() + "own_network_" + std::to_string(getpid());
    std::filesystem::remove_all(config_.out);
  }
  ~OwnNetwork() override { std::filesystem::remove_all(config_.out); }

  TrainConfig config_;
  TrainObserver silent_;
};

TEST_F(OwnNetwork, IsTrainedInItsPlan) {
  const auto summary = Train(config_, TinyNetwork(0), BuiltinOps(), silent_);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->steps, 3);
  EXPECT_EQ(summary->planned_peak_bytes, summary->measured_peak_bytes);
  EXPECT_EQ(summary->parameters, 4 * 3 * 3 * 3 + 4 * 10 + 10);
}

TEST_F(OwnNetwork, GivesTheRunItsName) {
  const auto summary = Train(config_, TinyNetwork(0), BuiltinOps(), silent_);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_THAT(summary->json, HasSubstr("\"model\": \"tiny\""));
}

TEST_F(OwnNetwork, WithOtherThanOneScorePerClassIsRefused) {
  const auto summary = Train(config_, TinyNetwork(1), BuiltinOps(), silent_);
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(summary.error().message,
              HasSubstr("tiny: the scores have shape (8, 11), expected (8, 10)"));
}

TEST_F(OwnNetwork, WhoseFactoryFailsIsNotTrained) {
  const ModelFactory broken = [](const ImageSpec&) -> Result<ImageClassifier> {
    return BadInput("no network today");
  };
  const auto summary = Train(config_, broken, BuiltinOps(), silent_);
  ASSERT_FALSE(summary.ok());
  EXPECT_THAT(summary.error().message, HasSubstr("no network today"));
  EXPECT_FALSE(std::filesystem::exists(config_.out));
}

}  // namespace
}  // namespace thimble
