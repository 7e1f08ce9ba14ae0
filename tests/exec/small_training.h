// Training of a small network, for tests of the executor: fixed initial weights, fixed batches.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/model_graphs.h"
#include "thimble/base/check.h"
#include "thimble/exec/executor.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/loop/initialize.h"

namespace thimble {

using ResidentContents = std::map<std::string, std::vector<std::byte>>;

inline std::unique_ptr<Executor> MakeExecutor(Program program, const OpRegistry& ops) {
  auto executor = Executor::Create(std::move(program), ops);
  THIMBLE_CHECK(executor.ok(), "{}", executor.error().message);
  return std::move(executor).value();
}

// The plans of a SmallTraining.
inline constexpr size_t kTrain = 0;
inline constexpr size_t kEvaluate = 1;

// wrn-10-1 on 8x8 images of four classes, a batch of five: plan 0 trains, plan 1 evaluates.
class SmallTraining {
 public:
  static constexpr int64_t kBatch = 5;

  explicit SmallTraining(int threads = 1, size_t scratch_bytes_per_thread = 1 << 18)
      : SmallTraining(PlanOptions{DeviceKind::kCpu, {threads, scratch_bytes_per_thread}, {}}) {}

  explicit SmallTraining(const PlanOptions& options)
      : SmallTraining(
            MakeExecutor(PlanGraphs({{"train", TrainingGraph(kModel, kBatch, TinyImages())},
                                     {"evaluate", EvaluationGraph(kModel, kBatch, TinyImages())}},
                                    options),
                         BuiltinOps())) {}

  // With an executor of the same program.
  explicit SmallTraining(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {
    InitializeResidents(*executor_, MakeNetwork(kModel, kBatch, Mode::kTrain, TinyImages()).inits,
                        /*seed=*/3);
  }

  Executor& executor() { return *executor_; }

  // Runs a plan on the batch of this number; returns the loss.
  float Run(size_t plan, uint32_t batch) {
    Feed(plan, batch);
    executor_->Run(plan);
    return ReadNumber<float>(*executor_, executor_->View(plan, kLossOutput));
  }

  // Prepares a run of the plan on the batch of this number.
  void Feed(size_t plan, uint32_t batch) {
    executor_->Prepare(plan);
    FillBatch(plan, batch);
  }

  ResidentContents Residents() const {
    executor_->FetchResidents();
    ResidentContents contents;
    for (const Resident& resident : executor_->program().residents.residents) {
      const auto bytes = executor_->ResidentBytes(resident.name);
      contents[resident.name].assign(bytes.begin(), bytes.end());
    }
    return contents;
  }

  void SetResidents(const ResidentContents& contents) {
    for (const auto& [name, bytes] : contents) {
      const auto target = executor_->ResidentBytes(name);
      THIMBLE_CHECK(target.size() == bytes.size(), "'{}'", name);
      std::memcpy(target.data(), bytes.data(), bytes.size());
    }
    executor_->StoreResidents();
  }

 private:
  static constexpr const char* kModel = "wrn-10-1";

  void FillBatch(size_t plan, uint32_t batch) {
    uint32_t state = batch * 2654435761U + 12345;
    const TensorView images = executor_->View(plan, kImagesInput);
    std::vector<uint8_t> pixels(images.size_bytes());
    for (uint8_t& pixel : pixels) {
      state = state * 1664525U + 1013904223U;
      pixel = static_cast<uint8_t>(state >> 24);
    }
    executor_->WriteNow(images, std::as_bytes(std::span(pixels)));
    std::vector<int32_t> labels(kBatch);
    for (int32_t& label : labels) {
      state = state * 1664525U + 1013904223U;
      label = static_cast<int32_t>(state >> 30);
    }
    executor_->WriteNow(executor_->View(plan, kLabelsInput), std::as_bytes(std::span(labels)));
    if (plan == kTrain) {
      WriteNumber(*executor_, executor_->View(plan, kLossWeightInput), 1.0F);
      WriteNumber(*executor_, executor_->View(plan, kLearningRateInput), 0.05F);
    }
  }

  std::unique_ptr<Executor> executor_;
};

}  // namespace thimble
