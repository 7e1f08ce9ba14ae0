// Ten updates of a small DynamicConv network with AdamW, compared with PyTorch: losses, the first
// gradients, the last weights. Sentences have unequal lengths. The golden file is made by
// tools/make_translator_golden.py and contains float64 results; beside them are the errors of
// PyTorch's own float32 run. Thimble's may be kErrorFactor times as large, and at least a few
// roundings (torch_golden_test.cc says more about such tolerances).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/test_paths.h"
#include "tests/support/tolerance.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/sequence_layers.h"
#include "thimble/model/translator.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/program.h"

namespace thimble {
namespace {

// One float32 run may be lucky; sums of some hundred terms round by a few units.
constexpr double kErrorFactor = 8;
constexpr double kRoundings = 16;

// Gradients of keys' biases are zero, because softmax does not change if a constant is added. What
// rounding leaves of them, Adam makes as large as other updates.
bool IsKeyBias(const std::string& parameter) { return parameter.ends_with("k_proj.bias"); }

struct PlanCase {
  std::string name;
  int threads = 1;
  RecomputeSpec recompute = {};
};

class TranslatorGoldenTest : public testing::TestWithParam<PlanCase> {
 protected:
  static constexpr size_t kPlan = 0;

  void SetUp() override {
    golden_ = ParseObject(BytesAt(GoldenFolder() + "/translator.json"));
    ASSERT_FALSE(golden_.empty());
    auto network = BuildTranslator(Spec(), BuiltinOps(), Batch(), Mode::kTrain);
    ASSERT_TRUE(network.ok()) << network.error().message;
    for (const InitRule& init : network->inits) parameters_.emplace(init.name, parameters_.size());
    size_t number = 0;
    for (auto& [name, index] : parameters_) index = number++;
    ASSERT_NO_FATAL_FAILURE(MakeExecutor(*network));
    WriteWeights();
  }

  int64_t Number(const char* name) const { return golden_["spec"][name].get<int64_t>(); }
  std::vector<int64_t> Kernels(const char* name) const {
    std::vector<int64_t> kernels;
    for (const Json& kernel : golden_["spec"][name]) kernels.push_back(kernel.get<int64_t>());
    return kernels;
  }

  TranslatorSpec Spec() const {
    return {.source_words = Number("source_words"),
            .target_words = Number("target_words"),
            .width = Number("width"),
            .feed_forward = Number("feed_forward"),
            .heads = Number("heads"),
            .encoder_kernels = Kernels("encoder_kernels"),
            .decoder_kernels = Kernels("decoder_kernels"),
            .dropout = 0,
            .attention_dropout = 0,
            .tap_dropout = 0,
            .label_smoothing = golden_["spec"]["label_smoothing"].number()};
  }
  SentenceShape Batch() const {
    return {.sentences = static_cast<int64_t>(golden_["source"].size()),
            .source_positions = static_cast<int64_t>(golden_["source"][0].size()),
            .target_positions = static_cast<int64_t>(golden_["target"][0].size())};
  }

  void MakeExecutor(Network& network) {
    const Json& adam = golden_["adam"];
    const OptimizerSpec optimizer{.name = "adam",
                                  .weight_decay = adam["weight_decay"].number(),
                                  .beta1 = adam["betas"][0].number(),
                                  .beta2 = adam["betas"][1].number(),
                                  .epsilon = adam["eps"].number()};
    Graph& graph = network.graph;
    ASSERT_TRUE(AppendUpdate(graph, BuiltinOps(), network.loss, {.optimizer = optimizer}).ok());
    for (const auto& [name, index] : parameters_) graph.outputs.push_back(graph.Find("d" + name));
    PlanOptions options;
    options.limits.threads = GetParam().threads;
    options.recompute = GetParam().recompute;
    auto program = PlanProgram({{"train", std::move(graph), 1}}, BuiltinOps(), {}, options);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto executor = Executor::Create(std::move(program).value(), BuiltinOps());
    ASSERT_TRUE(executor.ok()) << executor.error().message;
    executor_ = std::move(executor).value();
  }

  // By the formula of the script; the state of the optimizer starts at 0.
  void WriteWeights() {
    for (const Resident& resident : executor_->program().residents.residents) {
      const auto bytes = executor_->ResidentBytes(resident.name);
      std::fill(bytes.begin(), bytes.end(), std::byte{0});
    }
    for (const auto& [name, k] : parameters_) {
      const TensorView view = executor_->View(kPlan, name);
      std::vector<float> values(static_cast<size_t>(view.shape.elements()));
      const bool is_scale = name.find("norm") != std::string::npos && name.ends_with(".weight");
      for (size_t i = 0; i < values.size(); ++i) {
        const double wave =
            std::sin(0.7 * static_cast<double>(i + 1) + 1.3 * static_cast<double>(k));
        values[i] = static_cast<float>((is_scale ? 1 : 0) + 0.3 * wave);
      }
      executor_->WriteNow(view, std::as_bytes(std::span(values)));
    }
  }

  void WriteIntegers(const char* input, const Json& rows) {
    std::vector<int32_t> values;
    for (const Json& row : rows) {
      if (row.is_array()) {
        for (const Json& value : row) values.push_back(value.get<int32_t>());
      } else {
        values.push_back(row.get<int32_t>());
      }
    }
    executor_->WriteNow(executor_->View(kPlan, input), std::as_bytes(std::span(values)));
  }

  void Step(int32_t update) {
    executor_->Prepare(kPlan);
    WriteIntegers(kSourceInput, golden_["source"]);
    WriteIntegers(kSourceLengthsInput, golden_["source_lengths"]);
    WriteIntegers(kDecoderInput, golden_["decoder_input"]);
    WriteIntegers(kTargetInput, golden_["target"]);
    WriteIntegers(kTargetLengthsInput, golden_["target_lengths"]);
    WriteNumber(*executor_, executor_->View(kPlan, kLossWeightInput), 1 / NumTargets());
    WriteNumber(*executor_, executor_->View(kPlan, kLearningRateInput),
                golden_["adam"]["lr"].get<float>());
    WriteNumber(*executor_, executor_->View(kPlan, kUpdateInput), update);
    executor_->Run(kPlan);
  }

  float NumTargets() const {
    int64_t targets = 0;
    for (const Json& length : golden_["target_lengths"]) targets += length.get<int64_t>();
    return static_cast<float>(targets);
  }

  double Output(const char* name) const {
    return static_cast<double>(ReadNumber<float>(*executor_, executor_->View(kPlan, name)));
  }

  void ExpectDescribed(const std::string& value, size_t k, const Json& expected) const {
    const TensorView view = executor_->View(kPlan, value);
    std::vector<float> values(static_cast<size_t>(view.shape.elements()));
    executor_->ReadNow(view, std::as_writable_bytes(std::span(values)));
    double squares = 0;
    double projection = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto element = static_cast<double>(values[i]);
      squares += element * element;
      projection +=
          element * std::sin(12.9898 * static_cast<double>(i + 1) + static_cast<double>(k));
    }
    const double norm = expected["norm"].number();
    const double tolerance =
        kErrorFactor * expected["error"].number() + kRoundings * kFloatRounding * norm;
    EXPECT_NEAR(std::sqrt(squares), norm, tolerance) << value;
    EXPECT_NEAR(projection, expected["projection"].number(), 4 * tolerance) << value;
  }

  Json golden_;
  std::map<std::string, size_t> parameters_;  // their numbers, by name
  std::unique_ptr<Executor> executor_;
};

TEST_P(TranslatorGoldenTest, TenUpdatesFollowPyTorch) {
  const Json& losses = golden_["losses"];
  ASSERT_EQ(losses.size(), 10U);
  double error = 0;  // errors persist, so the largest so far counts
  for (size_t update = 0; update < losses.size(); ++update) {
    Step(static_cast<int32_t>(update));
    const double expected = losses[update].number();
    error = std::max(error, golden_["loss_errors"][update].number());
    const double tolerance = kErrorFactor * error + kRoundings * kFloatRounding * expected;
    EXPECT_NEAR(Output(kLossOutput), expected, tolerance) << "update " << update + 1;
    EXPECT_NEAR(Output(kNllOutput), golden_["nlls"][update].number(), tolerance)
        << "update " << update + 1;
    if (update > 0) continue;
    for (const auto& [name, k] : parameters_) {
      ExpectDescribed("d" + name, k, golden_["gradients"][name]);
    }
  }
  for (const auto& [name, k] : parameters_) {
    if (!IsKeyBias(name)) ExpectDescribed(name, k, golden_["weights"][name]);
  }
}

TEST_P(TranslatorGoldenTest, MeasuresWhatWasPlanned) {
  Step(0);
  Step(1);
  executor_->ScanArena();
  EXPECT_THAT(executor_->audit().faults(), testing::IsEmpty());
  EXPECT_EQ(executor_->audit().measured_peak_bytes(), executor_->planned_peak_bytes());
  EXPECT_EQ(executor_->allocations_in_runs().map_calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, TranslatorGoldenTest,
                         testing::Values(PlanCase{"plain"}, PlanCase{"two_threads", 2},
                                         PlanCase{"optimal", 2, {.kind = RecomputeKind::kOptimal}}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace thimble
