#include "thimble/train/task/translation_task.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/data/text/text_fixtures.h"
#include "tests/support/tolerance.h"
#include "tests/train/tiny_run.h"
#include "thimble/grad/adam.h"
#include "thimble/train/loop/evaluate.h"
#include "thimble/train/loop/step_queue.h"
#include "thimble/train/task/find_task.h"

namespace thimble {
namespace {

TrainConfig NumbersConfig(int64_t microbatch = 0) {
  TrainConfig config = TinyConfig();
  config.model = "dynamicconv-tiny";
  config.data = "numbers:300,40";
  config.data_given = true;
  config.batch = 300;
  config.microbatch = microbatch;
  config.optimizer = {.name = "adam", .beta2 = 0.98};
  return config;
}

// A run without the files of one.
class TranslationRun {
 public:
  explicit TranslationRun(const TrainConfig& config)
      : opened_(OpenTask(config).value()),
        program_(MakeTrainingProgram(config, opened_.task, BuiltinOps()).value()),
        batches_(opened_.data->Training(program_.batch)),
        executor_(Executor::Create(program_.program, BuiltinOps()).value()) {
    InitializeResidents(*executor_, program_.inits, config.seed, program_.update.sparsity);
    InitializeLossScale(*executor_, program_.update);
    executor_->StoreResidents();
    queue_.emplace(program_, *batches_, *executor_, config.prefetch);
  }

  std::vector<FinishedRun> Train(int64_t first, int64_t end, double rate = 1e-3) {
    EXPECT_TRUE(queue_->Start(first, end).ok());
    std::vector<FinishedRun> steps;
    for (int64_t step = first; step < end; ++step) {
      EXPECT_TRUE(queue_->Launch(rate).ok());
      steps.push_back(queue_->Collect());
    }
    queue_->Stop();
    return steps;
  }

  std::vector<float> Resident(const std::string& name) const {
    const auto bytes = executor_->ResidentBytes(name);
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  const OpenedTask& opened() const { return opened_; }
  const TrainingProgram& program() const { return program_; }
  const TrainingSource& batches() const { return *batches_; }
  Executor& executor() { return *executor_; }

 private:
  OpenedTask opened_;
  TrainingProgram program_;
  std::unique_ptr<TrainingSource> batches_;
  std::unique_ptr<Executor> executor_;
  std::optional<StepQueue> queue_;
};

double Largest(const std::vector<float>& numbers) {
  double largest = 0;
  for (const float number : numbers) {
    largest = std::max(largest, std::abs(static_cast<double>(number)));
  }
  return largest;
}

TEST(TranslationTask, BatchesHaveAtMostTheTokensAskedFor) {
  const auto opened = OpenTask(NumbersConfig());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  const std::vector<BatchShape> shapes = opened->task->TrainShapes(300);
  EXPECT_LE(shapes.size(), 32U);
  EXPECT_GT(shapes.size(), 1U);
  for (const BatchShape& shape : shapes) EXPECT_LE(shape.size(), 300);
  EXPECT_EQ(opened->task->FullShape(300), shapes.front());
  EXPECT_LE(opened->task->EvaluateShapes(DataPart::kTest, 300).size(), 8U);
}

TEST(TranslationTask, TheLargestShapesDecideTheArena) {
  const auto opened = OpenTask(NumbersConfig());
  const TaskPtr largest = opened->task->InLargestShapes();
  ASSERT_NE(largest, nullptr);
  EXPECT_LE(largest->TrainShapes(300).size(), 4U);
  EXPECT_EQ(largest->TrainShapes(300).front(), opened->task->TrainShapes(300).front());
  for (const char* recompute : {"none", "optimal"}) {
    TrainConfig config = NumbersConfig();
    config.recompute = recompute;
    const auto few = MakeTrainingProgram(config, largest, BuiltinOps());
    const auto all = MakeTrainingProgram(config, opened->task, BuiltinOps());
    EXPECT_EQ(few->program.arena_bytes, all->program.arena_bytes) << recompute;
  }
}

TEST(TranslationTask, MakesUpTokensOfTheDictionaries) {
  const auto opened = OpenTask(NumbersConfig());
  const BatchShape shape{3, 5, 7};
  std::vector<std::vector<int32_t>> numbers;
  std::vector<std::span<std::byte>> arrays;
  for (const BatchField& field : opened->task->fields()) {
    numbers.emplace_back(field.BytesOf(shape) / sizeof(int32_t), -1);
  }
  for (auto& array : numbers) arrays.push_back(std::as_writable_bytes(std::span(array)));
  opened->task->MakeUp(shape, arrays);
  const auto& spec = static_cast<const TranslationTask&>(*opened->task).spec();
  EXPECT_THAT(numbers[0],
              testing::Each(testing::AllOf(testing::Ge(4), testing::Lt(spec.source_words))));
  EXPECT_THAT(numbers[3],
              testing::Each(testing::AllOf(testing::Ge(4), testing::Lt(spec.target_words))));
  EXPECT_THAT(numbers[1], testing::Each(5));
  EXPECT_THAT(numbers[4], testing::Each(7));
}

TEST(TranslationTask, ValidationIsAPartOfTheFolder) {
  TrainConfig config = NumbersConfig();
  config.validation = 10;
  EXPECT_THAT(OpenTask(config).error().message, testing::HasSubstr("only for images"));
  const TestFolder folder("translation_task");
  WriteBitext(folder);
  config.validation = 0;
  config.data = "bitext:" + folder.path();
  const auto opened = OpenTask(config);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_TRUE(opened->data->Has(DataPart::kValidation));
}

// Sentences of unequal lengths, all kinds of dropout on: parts draw the same numbers and give the
// same update but for the order of additions. After one update from zero Adam's mean of gradients
// is a fixed multiple of the gradient.
TEST(TranslationTraining, PartsGiveTheUpdateOfTheBatch) {
  constexpr int64_t kStep = 1;
  TranslationRun whole(NumbersConfig());
  const FinishedRun expected = whole.Train(kStep, kStep + 1)[0];
  EXPECT_GT(expected.correct, 0);
  for (const int64_t microbatch : {17, 60, 150}) {
    TranslationRun parts(NumbersConfig(microbatch));
    EXPECT_TRUE(parts.program().in_parts());
    const FinishedRun actual = parts.Train(kStep, kStep + 1)[0];
    EXPECT_NEAR(actual.loss, expected.loss, 1e-5 * expected.loss) << microbatch;
    EXPECT_EQ(actual.correct, expected.correct);
    for (const InitRule& rule : whole.program().inits) {
      const std::string name = kFirstMomentPrefix + rule.name;
      const std::vector<float> mean = whole.Resident(name);
      const std::vector<float> in_parts = parts.Resident(name);
      const double tolerance = KernelTolerance(0, Largest(mean), 4 * 300);
      for (size_t i = 0; i < mean.size(); ++i) {
        ASSERT_NEAR(in_parts[i], mean[i], tolerance)
            << name << "[" << i << "] in parts of " << microbatch;
      }
    }
  }
}

TEST(TranslationTraining, PlannedIsMeasuredForEveryShape) {
  for (const int64_t microbatch : {0, 100}) {
    TrainConfig config = NumbersConfig(microbatch);
    config.recompute = "blocks";
    TranslationRun run(config);
    run.Train(0, run.batches().steps_per_epoch());
    const auto test = run.opened().data->Evaluation(DataPart::kTest, run.program().part);
    const auto evaluation = Evaluate(run.executor(), run.program(), *test);
    ASSERT_TRUE(evaluation.ok());
    EXPECT_GT(evaluation->count, 40);
    run.executor().ScanArena();
    EXPECT_TRUE(run.executor().audit().faults().empty()) << run.executor().audit().faults().front();
    EXPECT_EQ(run.executor().allocations_in_runs().heap_calls, 0);
  }
}

// The loss of evaluation has no label smoothing: it is that of guessing among V words, at first.
TEST(TranslationTraining, EvaluationMeasuresTheLikelihoodOfTokens) {
  TranslationRun run(NumbersConfig());
  for (const InitRule& rule : run.program().inits) {
    if (rule.name != "decoder.embed_out") continue;
    const auto bytes = run.executor().ResidentBytes(rule.name);
    std::ranges::fill(bytes, std::byte{0});
  }
  const auto test = run.opened().data->Evaluation(DataPart::kTest, run.program().part);
  const auto evaluation = Evaluate(run.executor(), run.program(), *test);
  ASSERT_TRUE(evaluation.ok());
  const auto& spec = static_cast<const TranslationTask&>(*run.opened().task).spec();
  EXPECT_NEAR(evaluation->loss, std::log(static_cast<double>(spec.target_words)), 1e-5);
}

}  // namespace
}  // namespace thimble
