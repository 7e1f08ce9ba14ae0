// dynamicconv-tiny learns `numbers`: text data, batches of tokens in a few shapes, a plan for each
// in one arena, Adam. Takes about half a minute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "thimble/data/text/text_dataset.h"
#include "thimble/data/text/token_batches.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/sequence_layers.h"
#include "thimble/model/translator.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/program.h"
#include "thimble/train/loop/initialize.h"

namespace thimble {
namespace {

constexpr int64_t kUpdates = 700;
constexpr int64_t kWarmup = 100;
constexpr double kLearningRate = 3e-3;
constexpr BatchLimits kLimits = {.max_tokens = 2000, .max_shapes = 8};

// Batches of one data set, and the plan for the first of their shapes.
struct PlannedBatches {
  TokenBatches batches;
  size_t first_plan = 0;
};

class NumbersTraining {
 public:
  NumbersTraining()
      : data_(OpenTextData("numbers", {.max_sentence_tokens = 256}).value()),
        train_{TokenBatches(*data_.train, kLimits, /*shuffle_seed=*/1)},
        test_{TokenBatches(*data_.test, kLimits, {}), train_.batches.shapes().size()} {
    TranslatorSpec spec =
        FindTranslator("dynamicconv-tiny", data_.train->source_dictionary().size(),
                       data_.train->target_dictionary().size())
            .value();
    spec.dropout = spec.attention_dropout = spec.tap_dropout = 0;
    std::vector<NamedGraph> graphs;
    std::vector<InitRule> inits;
    for (const BatchShape& shape : train_.batches.shapes()) {
      Network network = Build(spec, shape, Mode::kTrain);
      UpdateSpec update;
      update.optimizer.name = "adam";
      EXPECT_TRUE(AppendUpdate(network.graph, BuiltinOps(), network.loss, update).ok());
      inits = network.inits;
      graphs.push_back({"train " + std::to_string(graphs.size()), std::move(network.graph), 1});
    }
    for (const BatchShape& shape : test_.batches.shapes()) {
      graphs.push_back(
          {"test " + std::to_string(graphs.size()), Build(spec, shape, Mode::kEvaluate).graph, 0});
    }
    PlanOptions options;
    options.limits.threads = 2;
    executor_ =
        Executor::Create(PlanProgram(graphs, BuiltinOps(), {}, options).value(), BuiltinOps())
            .value();
    InitializeResidents(*executor_, inits, /*seed=*/1, SparsitySpec{});
  }

  Executor& executor() { return *executor_; }
  int64_t TestSentences() const { return data_.test->size(); }

  // The rate rises linearly, then falls linearly to 0.
  void Update(int64_t number) {
    const TokenBatch batch = train_.batches.BatchAt(number);
    const size_t plan = Feed(train_, batch);
    const auto done = static_cast<double>(number);
    const double rate =
        number < kWarmup ? (done + 1) / kWarmup : 1 - (done - kWarmup) / (kUpdates - kWarmup);
    Set(plan, kLearningRateInput, static_cast<float>(kLearningRate * rate));
    Set(plan, kLossWeightInput, 1 / static_cast<float>(train_.batches.TargetTokens(batch)));
    Set(plan, kUpdateInput, static_cast<int32_t>(number));
    executor_->Run(plan);
  }

  // Tokens of the test sentences that are not the most likely ones after those before them. A
  // sentence without any is what greedy decoding gives.
  int64_t WrongTestTokens() {
    int64_t wrong = 0;
    for (int64_t step = 0; step < test_.batches.batches_per_epoch(); ++step) {
      const TokenBatch batch = test_.batches.BatchAt(step);
      const size_t plan = Feed(test_, batch);
      executor_->Run(plan);
      wrong += test_.batches.TargetTokens(batch) -
               ReadNumber<int32_t>(*executor_, executor_->View(plan, kCorrectOutput));
    }
    return wrong;
  }

 private:
  static Network Build(const TranslatorSpec& spec, const BatchShape& shape, Mode mode) {
    return BuildTranslator(spec, BuiltinOps(),
                           {shape.samples, shape.source_length, shape.target_length}, mode)
        .value();
  }

  template <class T>
  void Set(size_t plan, const char* input, T number) {
    WriteNumber(*executor_, executor_->View(plan, input), number);
  }

  // Prepares a run on this batch; returns its plan.
  size_t Feed(const PlannedBatches& planned, const TokenBatch& batch) {
    const size_t plan = planned.first_plan + static_cast<size_t>(batch.shape);
    executor_->Prepare(plan);
    const auto input = [&](const char* name) { return executor_->View(plan, name).As<int32_t>(); };
    EXPECT_TRUE(planned.batches
                    .Fill(batch, {.source = input(kSourceInput),
                                  .source_lengths = input(kSourceLengthsInput),
                                  .decoder_input = input(kDecoderInput),
                                  .target = input(kTargetInput),
                                  .target_lengths = input(kTargetLengthsInput)})
                    .ok());
    return plan;
  }

  TextData data_;
  PlannedBatches train_;
  PlannedBatches test_;
  std::unique_ptr<Executor> executor_;
};

TEST(SlowTranslatorEndToEnd, LearnsNumbers) {
  NumbersTraining training;
  EXPECT_GT(training.WrongTestTokens(), training.TestSentences());  // knows nothing yet
  for (int64_t update = 0; update < kUpdates; ++update) training.Update(update);
  EXPECT_LE(training.WrongTestTokens(), training.TestSentences() / 100);
  training.executor().ScanArena();
  EXPECT_THAT(training.executor().audit().faults(), testing::IsEmpty());
  EXPECT_EQ(training.executor().audit().measured_peak_bytes(),
            training.executor().planned_peak_bytes());
}

}  // namespace
}  // namespace thimble
