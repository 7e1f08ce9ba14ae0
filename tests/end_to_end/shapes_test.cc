// How hard "shapes" is: a linear classifier of pixels cannot learn the classes, a small WideResNet
// can.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/trainer.h"

namespace thimble {
namespace {

class ShapesEndToEnd : public testing::Test {
 protected:
  ShapesEndToEnd() {
    config_.data = "shapes";
    config_.batch = 50;
    config_.schedule = "cosine";
    config_.eval_every = 0;
    config_.out = testing::TempDir() + "shapes_" + std::to_string(getpid());
    std::filesystem::remove_all(config_.out);
  }
  ~ShapesEndToEnd() override { std::filesystem::remove_all(config_.out); }

  TrainConfig config_;
  TrainObserver silent_;
};
using SlowShapesEndToEnd = ShapesEndToEnd;

TEST_F(ShapesEndToEnd, ALinearClassifierStaysBelowHalf) {
  const ModelFactory linear = [](const ImageSpec& images) -> Result<ImageClassifier> {
    return ImageClassifier{"linear", images, [classes = images.classes](auto& net, ValueId x) {
                             return net.Linear("fc", x, classes);
                           }};
  };
  config_.epochs = 10;
  // The best of 0.01, 0.003, 0.001 and 0.0003.
  config_.learning_rate = 0.001;
  const auto summary = Train(config_, linear, BuiltinOps(), silent_);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_LT(summary->test_accuracy, 0.5);
  EXPECT_GT(summary->test_accuracy, 0.2) << "it should learn something";
  RecordProperty("test_accuracy", std::to_string(*summary->test_accuracy));
}

TEST_F(SlowShapesEndToEnd, AWideResNetPasses97Percent) {
  config_.model = "wrn-16-2";
  config_.steps = 200;
  config_.optimizer.nesterov = true;
  const auto summary = Train(config_, BuiltinOps(), silent_);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_GT(summary->test_accuracy, 0.97);
}

}  // namespace
}  // namespace thimble
