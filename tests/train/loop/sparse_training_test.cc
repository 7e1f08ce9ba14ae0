// Sparse training computes what dense training under a mask computes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "tests/train/tiny_run.h"
#include "thimble/data/batches.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/grad/sgd.h"
#include "thimble/program/sparsity/pack_graph.h"
#include "thimble/tensor/short_numbers.h"
#include "thimble/train/loop/rewiring.h"
#include "thimble/train/loop/step_queue.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

// A run that is trained step by step.
class SteppedRun {
 public:
  explicit SteppedRun(const TrainConfig& config)
      : run_(config),
        batches_(*run_.data.train, run_.program.batch, config.seed),
        queue_(run_.program, batches_, *run_.executor, config.prefetch) {
    EXPECT_TRUE(queue_.Start(0, kEnd).ok());
  }
  void Train(double rate) {
    EXPECT_TRUE(queue_.Launch(rate).ok());
    queue_.Collect();
  }
  TinyRun& run() { return run_; }
  std::span<float> Floats(const std::string& name) {
    const auto bytes = run_.executor->ResidentBytes(name);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

 private:
  static constexpr int64_t kEnd = 1000;
  TinyRun run_;
  TrainBatches batches_;
  StepQueue queue_;
};

// Views of the packed parameters of a run.
std::vector<StoredTensor> Packed(const TinyRun& run) {
  std::vector<StoredTensor> packed = PersistentTensors(*run.executor, TensorSet::kWeights);
  std::erase_if(packed, [](const StoredTensor& tensor) { return !tensor.view.is_packed(); });
  return packed;
}

// A sparse run and a dense one whose weights and momentum are set to 0 where the sparse run has
// none.
class MaskedDense {
 public:
  explicit MaskedDense(const TrainConfig& sparse) : sparse_(sparse), dense_(Dense(sparse)) {
    EXPECT_FALSE(Packed(sparse_.run()).empty());
    Mask();
  }

  void Train(int64_t steps, int64_t rewire_every) {
    Rewiring rewiring(*sparse_.run().executor, sparse_.run().program.RewirePlan(),
                      {.rewire_every = rewire_every}, steps);
    for (int64_t step = 1; step <= steps; ++step) {
      sparse_.Train(kRate);
      dense_.Train(kRate);
      Mask();
      if (!rewiring.IsDueAfter(step)) continue;
      moved_ += rewiring.Run(step).moved;
      Mask();  // grown weights begin at 0, as all that were not active do
    }
  }
  int64_t moved() const { return moved_; }

  // The largest difference between weights, as a share of the largest weight.
  double LargestDifference() {
    double difference = 0;
    double largest = 0;
    for (const StoredTensor& tensor : Packed(sparse_.run())) {
      const auto* stored = static_cast<const float*>(StoredNumbers(tensor.view).data);
      const std::span<float> expected = dense_.Floats(tensor.name);
      for (size_t i = 0; i < expected.size(); ++i) {
        const float weight = tensor.view.packed.IsActive(i) ? *stored++ : 0.0F;
        difference = std::max(difference, std::abs(double{weight} - expected[i]));
        largest = std::max(largest, std::abs(double{weight}));
      }
    }
    return difference / largest;
  }

 private:
  static constexpr double kRate = 0.02;

  static TrainConfig Dense(TrainConfig config) {
    config.levers.erase("sparsity");
    return config;
  }
  void Mask() {
    for (const StoredTensor& tensor : Packed(sparse_.run())) {
      for (const std::string& name : {tensor.name, kMomentumPrefix + tensor.name}) {
        const std::span<float> numbers = dense_.Floats(name);
        for (size_t i = 0; i < numbers.size(); ++i) {
          if (!tensor.view.packed.IsActive(i)) numbers[i] = 0;
        }
      }
    }
  }

  SteppedRun sparse_;
  SteppedRun dense_;
  int64_t moved_ = 0;
};

TrainConfig SparseShapes(const std::string& method) {
  TrainConfig config = TinyConfig();
  config.data = "shapes:60,6";
  config.batch = 6;
  config.optimizer.nesterov = true;
  config.levers = {{"sparsity", "0.8"}, {"sparse-method", method}};
  return config;
}

TEST(SparseTraining, EqualsMaskedDenseTraining) {
  for (const char* method : {"dsr", "set", "static"}) {
    MaskedDense pair(SparseShapes(method));
    pair.Train(/*steps=*/50, /*rewire_every=*/10);
    EXPECT_EQ(pair.moved() > 0, std::string_view(method) != "static") << method;
    EXPECT_LT(pair.LargestDifference(), 1e-4) << method;
  }
}

TEST(SparseTraining, EqualsMaskedDenseTrainingInParts) {
  TrainConfig config = SparseShapes("dsr");
  config.microbatch = 3;
  config.optimizer.nesterov = false;
  for (const char* in_backward : {"false", "true"}) {
    config.levers["update-in-backward"] = in_backward;
    MaskedDense pair(config);
    pair.Train(/*steps=*/20, /*rewire_every=*/5);
    EXPECT_LT(pair.LargestDifference(), 1e-4) << in_backward;
  }
}

// The largest size among numbers in f16; infinite if one is not finite.
double LargestSize(std::span<const std::byte> stored) {
  std::vector<float> numbers(stored.size() / StorageBytes(DType::kF16, 1));
  DecodeNumbers({stored.data(), DType::kF16}, numbers.size(), numbers.data());
  double largest = 0;
  for (const float number : numbers) {
    if (!std::isfinite(number)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(double{number}));
  }
  return largest;
}

// Gradients that are used at once are never checked. Those that f16 cannot hold become its largest
// number, as long as dy is finite. (Where it is not, a layer's gradient is dropped.)
TEST(SparseTraining, ScaledGradientsBecomeNoInfiniteMomentum) {
  TrainConfig config = SparseShapes("dsr");
  config.optimizer.nesterov = false;
  config.levers["precision"] = "fp16";
  config.levers["update-in-backward"] = "true";
  double largest_used = 0;
  for (int exponent = 4; exponent <= 20; exponent += 2) {
    const double scale = std::exp2(exponent);
    config.loss_scale = fmt::format("{}", scale);
    SteppedRun run(config);
    run.Train(/*rate=*/0.02);
    const double momentum = LargestSize(run.run().executor->ResidentBytes(kSparseMomentum));
    EXPECT_LT(momentum, kLargestF16) << "scale " << scale;
    largest_used = std::max(largest_used, momentum * scale);
  }
  EXPECT_GT(largest_used, 0.99 * kLargestF16) << "no gradient was large enough to prove anything";
}

}  // namespace
}  // namespace thimble
