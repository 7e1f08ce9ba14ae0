#include "thimble/train/profile/made_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

TrainConfig Augmented() {
  TrainConfig config = TinyConfig();
  config.augment = "crop-flip";
  return config;
}

template <class T>
std::vector<T> Read(const TinyRun& run, std::string_view name) {
  const TensorView view = run.executor->View(run.program.TrainPlan(run.program.full), name);
  std::vector<T> numbers(static_cast<size_t>(view.shape.elements()));
  run.executor->ReadNow(view, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

TEST(MadeBatch, FillsEveryInput) {
  const TinyRun run(Augmented());
  const MadeBatch batch(run.program, *run.executor, run.program.TrainPlan(run.program.full));
  run.executor->Prepare(run.program.TrainPlan(run.program.full));
  batch.Write();
  const auto pixels = Read<uint8_t>(run, kImagesInput);
  EXPECT_GT(std::set<uint8_t>(pixels.begin(), pixels.end()).size(), 200U);
  EXPECT_THAT(Read<int32_t>(run, kLabelsInput), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Read<int32_t>(run, kSamplesInput), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Read<int32_t>(run, kEpochInput), testing::ElementsAre(1));
  EXPECT_THAT(Read<float>(run, kLearningRateInput), testing::ElementsAre(1e-6F));
}

TEST(MadeBatch, FillsWhatDropoutDrawsFrom) {
  TrainConfig config = TinyConfig();
  config.model = "wrn-10-1:dropout=0.3";
  const TinyRun run(config);
  ASSERT_EQ(ImagesOf(run.program).augmentation(), Augmentation::kNone);
  const MadeBatch batch(run.program, *run.executor, run.program.TrainPlan(run.program.full));
  run.executor->Prepare(run.program.TrainPlan(run.program.full));
  batch.Write();
  EXPECT_THAT(Read<int32_t>(run, kSamplesInput), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Read<int32_t>(run, kEpochInput), testing::ElementsAre(1));
}

TEST(MadeBatch, LabelsStayBelowTheNumberOfClasses) {
  TrainConfig config = TinyConfig();
  config.data = "shapes:30,6";
  config.batch = 25;
  const TinyRun run(config);
  const MadeBatch batch(run.program, *run.executor, run.program.TrainPlan(run.program.full));
  batch.Write();
  for (const int32_t label : Read<int32_t>(run, kLabelsInput)) {
    EXPECT_GE(label, 0);
    EXPECT_LT(label, ImagesOf(run.program).classifier().images.classes);
  }
}

// Measuring residents finds the ring in use, as in training.
TEST(MadeBatch, TheRingIsFilledToItsEnd) {
  const TinyRun run;
  FillPrefetchRing(*run.executor);
  run.executor->ScanArena();
  const MemoryAudit& audit = run.executor->audit();
  EXPECT_THAT(audit.faults(), testing::IsEmpty());
}

TEST(MadeBatch, WithoutTheRingResidentsAreMissed) {
  const TinyRun run;
  run.executor->ScanArena();
  EXPECT_THAT(run.executor->audit().faults(),
              testing::Contains(testing::HasSubstr("'prefetch[0].images'")));
}

TEST(MadeStep, RunsEveryPartAndTheUpdate) {
  TrainConfig config = TinyConfig();
  config.batch = 7;
  config.microbatch = 3;
  config.data = "shapes:14,6";
  const TinyRun run(config);
  const MadeStep step(run.program, *run.executor);
  ASSERT_EQ(step.num_plans(), 3U);
  std::vector<std::string> names;
  std::vector<bool> firsts;
  step.ForEachRun([&](size_t index, bool first_part) {
    names.push_back(run.program.program.names[step.plan(index)]);
    firsts.push_back(first_part);
  });
  EXPECT_EQ(names,
            (std::vector<std::string>{"train 3 of 7", "train 2 of 7", "train 2 of 7", "update 7"}));
  EXPECT_EQ(firsts, (std::vector<bool>{true, false, false, false}));
  for (int i = 0; i < 3; ++i) step.Run();
  EXPECT_TRUE(run.executor->audit().faults().empty());
}

TEST(MadeStep, IsOneRunWithoutParts) {
  const TinyRun run;
  const MadeStep step(run.program, *run.executor);
  EXPECT_EQ(step.num_plans(), 1U);
  EXPECT_EQ(step.plan(0), run.program.TrainPlan({4}));
  EXPECT_EQ(step.runs(0), 1);
}

}  // namespace
}  // namespace thimble
