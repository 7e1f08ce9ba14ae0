#include "thimble/train/loop/step_queue.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/recording_device.h"
#include "tests/support/tolerance.h"
#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/data/batches.h"
#include "thimble/grad/sgd.h"

namespace thimble {
namespace {

// Steps of seven images, the last one of an epoch of three; images are cropped and mirrored.
TrainConfig SevenAtATime(int64_t microbatch) {
  TrainConfig config = TinyConfig();
  config.data = "shapes:17,6";
  config.batch = 7;
  config.microbatch = microbatch;
  config.augment = "crop-flip";
  config.optimizer = {.momentum = 0.9, .nesterov = true, .weight_decay = 0};
  config.prefetch = 2;
  return config;
}

// Without batch norm: a sample does not depend on the others in its part.
ImageClassifier PlainNetwork(const ImageSpec& images) {
  return {"plain", images, [classes = images.classes](NetworkBuilder& net, ValueId x) {
            x = net.Conv("conv", x, {.out_channels = 5, .kernel = 3, .stride = 2, .padding = 1});
            x = net.Conv("conv2", net.Relu(x), {.out_channels = 4, .kernel = 3, .padding = 1});
            return net.Linear("fc", net.GlobalAveragePool(net.Relu(x)), classes);
          }};
}

// The same with a norm after the first convolution: its inputs do not depend on the parts.
ImageClassifier NormNetwork(const ImageSpec& images) {
  return {"norm", images, [classes = images.classes](NetworkBuilder& net, ValueId x) {
            x = net.Conv("conv", x, {.out_channels = 5, .kernel = 3, .stride = 2, .padding = 1});
            x = net.Relu(net.BatchNorm("bn", x));
            return net.Linear("fc", net.GlobalAveragePool(x), classes);
          }};
}

// The same where the data makes every normalised image NaN.
ImageClassifier NormNetworkOfNaNs(const ImageSpec& images) {
  ImageSpec spec = images;
  spec.mean[0] = std::numeric_limits<double>::quiet_NaN();
  return NormNetwork(spec);
}

enum class On { kCpu, kDeviceOfItsOwn };

// Data, plans, an arena and a queue.
class QueueRun {
 public:
  explicit QueueRun(const TrainConfig& config, ImageClassifier (*network)(const ImageSpec&),
                    On on = On::kCpu)
      : data_(TinyData(config)),
        program_(MakeTrainingProgram(config, network(SpecOf(data_)), CountsOf(data_), BuiltinOps())
                     .value()),
        batches_(*data_.train, program_.batch, config.seed) {
    if (on == On::kDeviceOfItsOwn) {
      auto device = std::make_unique<RecordingDevice>(program_.program.arena_bytes);
      device_ = device.get();
      executor_ = Executor::CreateOn(std::move(device), program_.program, BuiltinOps()).value();
    } else {
      executor_ = Executor::Create(program_.program, BuiltinOps()).value();
    }
    InitializeResidents(*executor_, program_.inits, config.seed, program_.update.sparsity);
    InitializeLossScale(*executor_, program_.update);
    executor_->StoreResidents();
    queue_ = std::make_unique<StepQueue>(program_, batches_, *executor_, config.prefetch);
  }

  std::vector<FinishedRun> Train(int64_t steps) {
    EXPECT_TRUE(queue_->Start(0, steps).ok());
    std::vector<FinishedRun> finished;
    int64_t launched = 0;
    while (std::ssize(finished) < steps) {
      for (; launched < steps && !queue_->full(); ++launched) {
        EXPECT_TRUE(queue_->Launch(0.05).ok());
        slower_.push_back(queue_->last_launch_was_slower());
      }
      finished.push_back(queue_->Collect());
    }
    return finished;
  }

  // Whether each launch took longer than later ones.
  const std::vector<bool>& slower() const { return slower_; }

  std::vector<float> Resident(const std::string& name) {
    executor_->FetchResidents();
    const auto bytes = executor_->ResidentBytes(name);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  std::vector<std::byte> Bytes(const std::string& name) {
    executor_->FetchResidents();
    const auto bytes = executor_->ResidentBytes(name);
    return {bytes.begin(), bytes.end()};
  }

  StepQueue& queue() { return *queue_; }
  RecordingDevice& device() { return *device_; }
  const TrainingProgram& program() const { return program_; }
  const Executor& executor() const { return *executor_; }

 private:
  ImageData data_;
  TrainingProgram program_;
  TrainBatches batches_;
  RecordingDevice* device_ = nullptr;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<StepQueue> queue_;
  std::vector<bool> slower_;
};

// Allows for the rounding of sums in another order.
void ExpectEqualToRounding(const std::vector<float>& actual, const std::vector<float>& expected,
                           const std::string& what) {
  constexpr double kSumSize = 7 * 16 * 16;
  ASSERT_EQ(actual.size(), expected.size());
  double largest = 0;
  for (const float number : expected) {
    largest = std::max(largest, static_cast<double>(std::abs(number)));
  }
  EXPECT_GT(largest, 0) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], KernelTolerance(expected[i], 4 * largest, kSumSize))
        << what << "[" << i << "]";
  }
}

// After one step without weight decay the momentum is the gradient.
TEST(StepQueue, PartsGiveTheGradientOfTheBatch) {
  QueueRun whole(SevenAtATime(0), PlainNetwork);
  const double loss = whole.Train(1)[0].loss;
  for (const int64_t microbatch : {1, 2, 3, 4, 6}) {
    QueueRun parts(SevenAtATime(microbatch), PlainNetwork);
    const FinishedRun step = parts.Train(1)[0];
    EXPECT_NEAR(step.loss, loss, KernelTolerance(loss, loss, 7)) << microbatch;
    for (const char* name : {"conv.weight", "conv2.weight", "fc.weight", "fc.bias"}) {
      const std::string momentum = std::string("momentum.") + name;
      ExpectEqualToRounding(parts.Resident(momentum), whole.Resident(momentum),
                            fmt::format("{} in parts of {}", momentum, microbatch));
    }
  }
}

// Several steps, across the end of an epoch: weights and losses stay equal up to rounding.
TEST(StepQueue, PartsTrainAsTheBatchDoes) {
  QueueRun whole(SevenAtATime(0), PlainNetwork);
  QueueRun parts(SevenAtATime(3), PlainNetwork);
  const auto expected = whole.Train(7);
  const auto actual = parts.Train(7);
  for (size_t step = 0; step < expected.size(); ++step) {
    EXPECT_NEAR(actual[step].loss, expected[step].loss, 1e-5) << step;
    EXPECT_EQ(actual[step].correct, expected[step].correct) << step;
  }
  for (const char* name : {"conv.weight", "conv2.weight", "fc.weight"}) {
    ExpectEqualToRounding(parts.Resident(name), whole.Resident(name), name);
  }
}

// A whole batch in one part is the plain plan, to the last bit.
TEST(StepQueue, OnePartIsThePlainRun) {
  QueueRun whole(SevenAtATime(0), NormNetwork);
  QueueRun one(SevenAtATime(7), NormNetwork);
  EXPECT_EQ(one.program().program.names, whole.program().program.names);
  EXPECT_EQ(one.program().program.arena_bytes, whole.program().program.arena_bytes);
  whole.Train(3);
  one.Train(3);
  EXPECT_EQ(one.Resident("conv.weight"), whole.Resident("conv.weight"));
  EXPECT_EQ(one.Resident("bn.running_var"), whole.Resident("bn.running_var"));
}

// If the inputs of a layer do not depend on the parts, the mean of the means is that of the batch,
// and the mean of the variances plus the variance of the means is its variance.
TEST(StepQueue, RunningStatisticsAreThoseOfTheBatch) {
  QueueRun whole(SevenAtATime(0), NormNetwork);
  whole.Train(1);
  for (const int64_t microbatch : {1, 3, 5}) {
    QueueRun parts(SevenAtATime(microbatch), NormNetwork);
    parts.Train(1);
    for (const char* name : {"bn.running_mean", "bn.running_var"}) {
      ExpectEqualToRounding(parts.Resident(name), whole.Resident(name),
                            fmt::format("{} in parts of {}", name, microbatch));
    }
  }
}

// With batch norm the gradient differs, because statistics are per part.
TEST(StepQueue, BatchNormSeesTheParts) {
  QueueRun whole(SevenAtATime(0), NormNetwork);
  QueueRun parts(SevenAtATime(3), NormNetwork);
  whole.Train(1);
  parts.Train(1);
  const auto expected = whole.Resident("momentum.conv.weight");
  const auto actual = parts.Resident("momentum.conv.weight");
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference = std::max(difference, std::abs(static_cast<double>(actual[i] - expected[i])));
  }
  EXPECT_GT(difference, 1e-4);
}

// NaN in the data: weights, momentum and running statistics stay as they were, bit for bit, the
// update is counted as skipped, and the scale shrinks.
TEST(StepQueue, NaNInTheDataChangesNothing) {
  for (const int64_t microbatch : {0, 3}) {
    for (const char* precision : {"fp32", "fp16"}) {
      for (const bool in_backward : {false, true}) {
        TrainConfig config = SevenAtATime(microbatch);
        config.optimizer.nesterov = false;
        config.levers["precision"] = precision;
        config.loss_scale = "8";
        if (in_backward) config.levers["update-in-backward"] = "true";
        QueueRun run(config, NormNetworkOfNaNs);
        const std::vector<std::string> names = {
            "conv.weight",     "bn.weight",      "fc.weight", "momentum.conv.weight",
            "bn.running_mean", "bn.running_var", "fc.bias",   "momentum.fc.weight"};
        std::vector<std::vector<std::byte>> before;
        for (const std::string& name : names) before.push_back(run.Bytes(name));
        const FinishedRun step = run.Train(1)[0];
        const std::string what = fmt::format("{}, parts of {}, {}", precision, microbatch,
                                             in_backward ? "updates in backward" : "one update");
        EXPECT_GE(step.loss_scale.skipped, 1) << what;
        EXPECT_LT(step.loss_scale.scale, 8) << what;
        for (size_t i = 0; i < names.size(); ++i) {
          EXPECT_TRUE(run.Bytes(names[i]) == before[i]) << names[i] << ", " << what;
        }
      }
    }
  }
}

// Ghost batch norm normalises the same parts in one run: the same step up to rounding.
TEST(StepQueue, PartsAreGhostBatchNorm) {
  for (const int64_t size : {1, 2, 3, 5}) {
    TrainConfig config = SevenAtATime(0);
    config.bn_group = size;
    QueueRun ghost(config, NormNetwork);
    QueueRun parts(SevenAtATime(size), NormNetwork);
    const double loss = ghost.Train(1)[0].loss;
    EXPECT_NEAR(parts.Train(1)[0].loss, loss, 1e-5 * loss) << size;
    for (const char* name : {"momentum.conv.weight", "momentum.bn.weight", "momentum.bn.bias",
                             "momentum.fc.weight", "bn.running_mean", "bn.running_var"}) {
      ExpectEqualToRounding(parts.Resident(name), ghost.Resident(name),
                            fmt::format("{} in parts of {}", name, size));
    }
  }
}

// Groups inside parts: seven in parts of four and three, these in groups of two and one.
TEST(StepQueue, PartsMayHaveGroups) {
  TrainConfig config = SevenAtATime(4);
  config.bn_group = 2;
  QueueRun both(config, NormNetwork);
  QueueRun pairs(SevenAtATime(2), NormNetwork);  // 2, 2, 2, 1, as 2, 2 | 2, 1
  both.Train(3);
  pairs.Train(3);
  for (const char* name : {"conv.weight", "bn.weight", "bn.running_mean", "bn.running_var"}) {
    ExpectEqualToRounding(both.Resident(name), pairs.Resident(name), name);
  }
}

// Group norm and dropout treat samples independently: parts change only rounding.
TEST(StepQueue, GroupNormAndDropoutDoNotNoticeParts) {
  const auto wide = [](const ImageSpec& images) {
    return FindModel("wrn-10-1:group-norm=8,dropout=0.3", images).value();
  };
  QueueRun whole(SevenAtATime(0), wide);
  const double loss = whole.Train(1)[0].loss;
  for (const int64_t microbatch : {1, 3}) {
    QueueRun parts(SevenAtATime(microbatch), wide);
    EXPECT_NEAR(parts.Train(1)[0].loss, loss, 1e-5 * loss);
    for (const InitRule& rule : whole.program().inits) {
      const std::string momentum = kMomentumPrefix + rule.name;
      ExpectEqualToRounding(parts.Resident(momentum), whole.Resident(momentum),
                            fmt::format("{} in parts of {}", momentum, microbatch));
    }
  }
}

TEST(StepQueue, AnyNumberOfThreadsGivesTheSameBits) {
  TrainConfig config = SevenAtATime(3);
  QueueRun one(config, NormNetwork);
  config.threads = 2;
  QueueRun two(config, NormNetwork);
  one.Train(4);
  two.Train(4);
  for (const char* name : {"conv.weight", "fc.weight", "bn.running_mean", "bn.running_var"}) {
    EXPECT_EQ(one.Resident(name), two.Resident(name)) << name;
  }
}

TEST(StepQueue, PlannedIsMeasuredAndNothingIsAllocated) {
  QueueRun run(SevenAtATime(3), NormNetwork);
  run.Train(6);
  EXPECT_TRUE(run.slower()[0]) << "audited";
  EXPECT_FALSE(run.slower()[1]);
  EXPECT_TRUE(run.slower()[2]) << "three images have plans of their own";
  EXPECT_EQ(run.executor().allocations_in_runs().heap_calls, 0);
  EXPECT_TRUE(run.executor().audit().faults().empty()) << run.executor().audit().faults().front();
}

TEST(StepQueue, RunsUnderWayChangeNothing) {
  QueueRun cpu(SevenAtATime(3), NormNetwork);
  const auto expected = cpu.Train(5);
  for (const int64_t slots : {0, 1, 3}) {
    TrainConfig config = SevenAtATime(3);
    config.prefetch = slots;
    QueueRun behind(config, NormNetwork, On::kDeviceOfItsOwn);
    const auto actual = behind.Train(5);
    for (size_t step = 0; step < expected.size(); ++step) {
      EXPECT_EQ(actual[step].loss, expected[step].loss) << slots << " slots";
      EXPECT_EQ(actual[step].correct, expected[step].correct);
    }
    EXPECT_EQ(behind.Resident("conv.weight"), cpu.Resident("conv.weight")) << slots << " slots";
  }
}

// Two steps of four runs are in flight before a result is read.
TEST(StepQueue, NothingWaitsBetweenParts) {
  TrainConfig config = SevenAtATime(3);
  config.prefetch = 0;
  QueueRun run(config, PlainNetwork, On::kDeviceOfItsOwn);
  run.Train(3);  // audited
  EXPECT_TRUE(run.queue().Start(3, 5).ok());
  run.device().TakeLog();
  ASSERT_TRUE(run.queue().Launch(0.1).ok());
  EXPECT_FALSE(run.queue().full());
  ASSERT_TRUE(run.queue().Launch(0.1).ok());
  EXPECT_TRUE(run.queue().full());
  EXPECT_EQ(run.queue().size(), 2);
  const auto log = run.device().TakeLog();
  EXPECT_EQ(std::count_if(log.begin(), log.end(),
                          [](const std::string& line) { return line.starts_with("replay"); }),
            8);
  run.queue().Collect();
  EXPECT_FALSE(run.queue().full());
  run.queue().Collect();
  EXPECT_TRUE(run.queue().empty());
}

TEST(StepQueueDeathTest, TooManyOrTooFew) {
  QueueRun run(SevenAtATime(3), PlainNetwork);
  EXPECT_TRUE(run.queue().Start(0, 2).ok());
  EXPECT_DEATH(run.queue().Collect(), "no step was launched");
  ASSERT_TRUE(run.queue().Launch(0.1).ok());
  EXPECT_DEATH((void)run.queue().Launch(0.1), "1 steps are already in flight");
}

}  // namespace
}  // namespace thimble
