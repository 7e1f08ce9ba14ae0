#include "thimble/train/loop/run_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/batch_memory.h"
#include "tests/support/recording_device.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/loop/batch_feed.h"
#include "thimble/train/loop/evaluate.h"

namespace thimble {
namespace {

using testing::ElementsAre;

// A tiny run whose executor uses an asynchronous device.
struct BehindRun {
  BehindRun() : run(WithoutRing()) {
    const Program& program = run.program.program;
    auto owned = std::make_unique<RecordingDevice>(program.arena_bytes);
    device = owned.get();
    executor = Executor::CreateOn(std::move(owned), program, BuiltinOps()).value();
    InitializeResidents(*executor, run.program.inits, run.config.seed);
  }
  static TrainConfig WithoutRing() {
    TrainConfig config = TinyConfig();
    config.prefetch = 0;
    config.augment = "crop-flip";
    return config;
  }

  TinyRun run;
  RecordingDevice* device = nullptr;
  std::unique_ptr<Executor> executor;
};

// Losses of the first steps, with as many steps in flight as the device allows.
std::vector<double> Train(const TinyRun& run, Executor& executor, int64_t slots, int64_t steps) {
  const TrainBatches batches(*run.data.train, run.config.batch, 1);
  const BatchParts whole = WholeBatches(batches);
  BatchFeed feed(whole, executor, slots, batches.Shapes());
  EXPECT_TRUE(feed.Start(0, steps).ok());
  RunQueue queue(executor, batches.fields());
  std::vector<double> losses;
  int64_t launched = 0;
  while (std::ssize(losses) < steps) {
    for (; launched < steps && !queue.full(); ++launched) {
      const PlanPorts& ports = queue.Begin(run.program.TrainPlan({batches.CountAt(launched)}));
      EXPECT_TRUE(feed.Next(launched, ports.batch).ok());
      queue.SetSamples([&](std::span<int32_t> samples) { batches.Samples(launched, samples); });
      queue.Set(ports.epoch, static_cast<int32_t>(batches.BatchAt(launched).epoch));
      queue.Set(ports.loss_weight, 1.0F);
      queue.Set(ports.learning_rate, 0.01F * static_cast<float>(launched));
      queue.Launch();
    }
    losses.push_back(queue.Collect().loss);
  }
  return losses;
}

TEST(RunQueue, RunsUnderWayChangeNothing) {
  const TinyRun cpu(BehindRun::WithoutRing());
  const std::vector<double> expected = Train(cpu, *cpu.executor, 0, 7);
  for (const int64_t slots : {0, 1, 3}) {
    const BehindRun behind;
    EXPECT_EQ(Train(behind.run, *behind.executor, slots, 7), expected) << slots << " slots";
  }
}

TEST(RunQueue, EvaluatesAlike) {
  const TinyRun cpu(BehindRun::WithoutRing());
  const BehindRun behind;
  const auto expected = Evaluate(*cpu.executor, cpu.program, EvalBatches(*cpu.data.test, 4));
  for (int i = 0; i < 2; ++i) {  // audited and not
    const auto actual =
        Evaluate(*behind.executor, behind.run.program, EvalBatches(*behind.run.data.test, 4));
    EXPECT_EQ(actual->loss, expected->loss);
    EXPECT_EQ(actual->accuracy, expected->accuracy);
  }
}

TEST(RunQueue, TheNextRunIsEnqueuedBeforeTheLastIsCollected) {
  const BehindRun behind;
  RunQueue queue(*behind.executor, ImageFields(3072));
  EXPECT_EQ(queue.max_runs(), 2U);
  const size_t plan = behind.run.program.EvaluatePlan({2});
  const std::vector<uint8_t> images(2 * 3072);
  const std::vector<int32_t> labels(2);
  const auto launch = [&] {
    const PlanPorts& ports = queue.Begin(plan);
    behind.executor->Write(ports.batch[0], std::as_bytes(std::span(images)));
    behind.executor->Write(ports.batch[1], std::as_bytes(std::span(labels)));
    queue.Launch();
  };
  launch();
  queue.Collect();
  behind.device->TakeLog();
  launch();
  launch();
  EXPECT_TRUE(queue.full());
  const double first = queue.Collect().loss;
  EXPECT_EQ(queue.size(), 1U);
  EXPECT_EQ(queue.Collect().loss, first);
  EXPECT_TRUE(queue.empty());
  const std::string replay = fmt::format("replay {}", plan);
  EXPECT_THAT(behind.device->TakeLog(),
              ElementsAre("write 6144", "write 8", replay, "read 4", "read 4", "write 6144",
                          "write 8", replay, "read 4", "read 4"));
}

TEST(RunQueue, OnTheCpuOneAtATime) {
  const TinyRun run;
  const RunQueue queue(*run.executor, ImageFields(3072));
  EXPECT_EQ(queue.max_runs(), 1U);
  EXPECT_TRUE(queue.empty());
}

TEST(RunQueueDeathTest, TooManyOrTooFew) {
  const TinyRun run;
  RunQueue queue(*run.executor, ImageFields(3072));
  EXPECT_DEATH(queue.Collect(), "no run was launched");
  const PlanPorts& ports = queue.Begin(run.program.TrainPlan({4}));
  EXPECT_DEATH(
      {
        for (int i = 0; i < 100; ++i) queue.Set(ports.learning_rate, 1.0F);
      },
      "a run has more than 8 numbers");
  EXPECT_DEATH(queue.SetSamples([](std::span<int32_t>) {}), "the plan has no input for samples");
  const std::vector<int32_t> labels(4);
  run.executor->Write(ports.batch[1], std::as_bytes(std::span(labels)));
  queue.Launch();
  EXPECT_DEATH(queue.Begin(0), "1 runs are already in flight");
}

}  // namespace
}  // namespace thimble
