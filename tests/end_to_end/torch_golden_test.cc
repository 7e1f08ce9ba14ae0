// Ten training steps compared with PyTorch, from the same weights and batches. The golden files are
// made by tools/make_torch_goldens.py and contain float64 results; a tensor is described by its
// norm and its product with a fixed vector, which any wrong, missing or permuted element changes.
//
// wrn-28-2 is the benchmark as it is trained: its first loss and statistics are accurate (float32
// errors of 1e-7 and 1e-6), gradients less (6e-3: rounding moves ReLU inputs across zero), and from
// the third step on the rate of 0.1 has amplified this to 1e-2. wrn-10-1 runs with a low rate and a
// seed that keeps ReLU inputs away from zero: everything is accurate (3e-6) up to the last step.
//
// Where the tolerances come from. No float32 program gives the float64 values: roundings differ, a
// ReLU input near zero changes its sign, and training amplifies earlier differences. The
// unavoidable error is measured: the golden file has, for every tensor, the norm of the error
// vector of PyTorch's own float32 runs (the largest of four with different orders of additions).
// Thimble's error may be kTorchFactor times as large. Then
//   - norms differ by at most that (triangle inequality);
//   - a product with a vector r whose elements have mean square 1/2 differs, if the error has no
//     special direction, by a normal number with deviation |error| * sqrt(1/2): kSideFactor such
//     deviations are allowed, for some hundred tensors.
// The minimum tolerance is the rounding of the result itself, for results that are exact by chance.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>
#include <numeric>
#include <set>

#include "tests/end_to_end/thimble_fixture.h"
#include "tests/support/test_paths.h"
#include "tests/support/tolerance.h"
#include "thimble/base/json.h"
#include "thimble/data/batches.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/device/device.h"
#include "thimble/exec/executor.h"
#include "thimble/grad/training_graph.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/ops/conv2d/winograd/winograd_cpu.h"
#include "thimble/train/loop/dump_batches.h"
#include "thimble/train/loop/initialize.h"
#include "thimble/train/planning/training_program.h"
#include "thimble/train/task/image_task.h"
#include "thimble/train/weights/tensor_layout.h"

namespace thimble {
namespace {

// The same sums in another order: two float32 programs have similar errors, except for the chance
// and chaos of a single run.
constexpr double kTorchFactor = 4;
// One in 15,000 normal numbers is beyond four deviations.
constexpr double kSideFactor = 4;

// A tensor as described in the golden file.
struct Description {
  double norm = 0;
  double projection = 0;
};

Description Describe(const TensorView& view, size_t index) {
  const bool convolution = view.shape.rank() == 4;  // (O, KH, KW, I) here, (O, I, KH, KW) there
  const ChannelSlice slice = convolution ? SliceOf(view.shape, view.dtype) : ChannelSlice{};
  std::vector<float> values(static_cast<size_t>(view.shape.elements()));
  const auto out = std::as_writable_bytes(std::span(values));
  const size_t step = convolution ? slice.size_bytes() : out.size();
  for (size_t begin = 0; begin < out.size(); begin += step) {
    const auto from = view.bytes().subspan(begin, step);
    const auto to = out.subspan(begin, step);
    if (convolution) {
      SliceToFile(slice, from, to);
    } else {
      std::copy(from.begin(), from.end(), to.begin());
    }
  }
  Description result;
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    result.norm += value * value;
    result.projection +=
        value * std::sin(12.9898 * static_cast<double>(i + 1) + static_cast<double>(index));
  }
  result.norm = std::sqrt(result.norm);
  return result;
}

void ExpectNear(double actual, double expected, double tolerance, const std::string& what) {
  EXPECT_LE(std::abs(actual - expected), tolerance)
      << what << ": expected " << expected << ", actual " << actual << ", relative difference "
      << std::abs(actual - expected) / std::abs(expected);
}

// `error` is the norm of PyTorch's own float32 error.
void ExpectDescribed(const Description& actual, const Json& golden, double error,
                     const std::string& what) {
  const double norm = golden["norm"].get<double>();
  const double tolerance = kTorchFactor * error + kFloatRounding * norm;
  ExpectNear(actual.norm, norm, tolerance, what + ", length");
  ExpectNear(actual.projection, golden["projection"].number(),
             kSideFactor * std::sqrt(0.5) * tolerance, what + ", projection");
}

// The network of the golden file, ready to run, with gradients that can be read after a step.
struct GoldenCase {
  std::string name;  // of the golden file
  std::string simd;
  std::set<std::string> kernel_options = {};
  double rounding = 1;  // as Kernel::rounding
  DeviceKind device = DeviceKind::kCpu;
};

class TorchGoldenTest : public testing::TestWithParam<GoldenCase> {
 protected:
  static constexpr size_t kPlan = 0;

  void SetUp() override {
    if (const auto check = CheckDevice(GetParam().device); !check.ok()) {
      GTEST_SKIP() << check.error().message;
    }
    ASSERT_TRUE(PinSimdTarget(GetParam().simd).ok());
    const std::string path = GoldenFolder() + "/" + GetParam().name + ".json";
    golden_ = ParseObject(BytesAt(path));
    ASSERT_FALSE(golden_.empty());
    config_.data = golden_["data"].text();
    config_.batch = golden_["batch"].get<int64_t>();
    config_.seed = golden_["seed"].get<uint64_t>();
    auto data = OpenImageData(config_.data, {.seed = config_.seed});
    ASSERT_TRUE(data.ok()) << data.error().message;
    data_ = std::move(data).value();
    batches_ = std::make_unique<TrainBatches>(*data_.train, config_.batch, config_.seed);
    MakeExecutor();
  }
  void TearDown() override { ASSERT_TRUE(PinSimdTarget("auto").ok()); }

  void MakeExecutor() {
    const OpRegistry& ops = BuiltinOps();
    const auto model = FindModel(golden_["model"].get<std::string>(), SpecOf(data_));
    ASSERT_TRUE(model.ok());
    auto network = BuildNetwork(*model, ops, config_.batch, Mode::kTrain);
    ASSERT_TRUE(network.ok());
    const OptimizerSpec optimizer{.momentum = golden_["momentum"].number(),
                                  .nesterov = true,
                                  .weight_decay = golden_["weight_decay"].number()};
    Graph& graph = network->graph;
    ASSERT_TRUE(AppendUpdate(graph, ops, network->loss, {.optimizer = optimizer}).ok());
    for (const Json& parameter : golden_["parameters"]) {
      const ValueId gradient = graph.Find(GradientName(parameter));
      ASSERT_TRUE(gradient.valid()) << GradientName(parameter);
      graph.outputs.push_back(gradient);
    }
    PlanOptions options;
    options.device = GetParam().device;
    options.kernel_options = GetParam().kernel_options;
    options.limits.threads = ResolvedThreads(config_);
    options.limits.scratch_bytes_per_thread = static_cast<size_t>(config_.scratch_bytes);
    auto program = PlanProgram({{"train", std::move(graph)}}, ops, {}, options);
    ASSERT_TRUE(program.ok()) << program.error().message;
    auto executor = Executor::Create(std::move(program).value(), ops);
    ASSERT_TRUE(executor.ok()) << executor.error().message;
    executor_ = std::move(executor).value();
    InitializeResidents(*executor_, network->inits, config_.seed);
  }

  // Returns the loss.
  double Step(size_t step) {
    executor_->Prepare(kPlan);
    const TensorView images_input = executor_->View(kPlan, kImagesInput);
    const TensorView labels_input = executor_->View(kPlan, kLabelsInput);
    std::vector<uint8_t> images(images_input.size_bytes());
    std::vector<int32_t> labels(static_cast<size_t>(labels_input.shape.elements()));
    EXPECT_TRUE(batches_->Fill(static_cast<int64_t>(step), images, labels).ok());
    EXPECT_EQ(std::accumulate(images.begin(), images.end(), int64_t{0}),
              golden_["image_sums"][step].get<int64_t>());
    EXPECT_EQ(Json(labels), golden_["labels"][step]);
    executor_->WriteNow(images_input, std::as_bytes(std::span(images)));
    executor_->WriteNow(labels_input, std::as_bytes(std::span(labels)));
    WriteNumber(*executor_, executor_->View(kPlan, kLossWeightInput), 1.0F);
    WriteNumber(*executor_, executor_->View(kPlan, kLearningRateInput),
                golden_["learning_rate"].get<float>());
    executor_->Run(kPlan);
    return static_cast<double>(ReadNumber<float>(*executor_, executor_->View(kPlan, kLossOutput)));
  }

  // Compares golden_[list][…][part] with the value that `name` gives for each entry.
  template <class Name>
  void ExpectAll(const std::string& list, const std::string& part, Name name) const {
    const Json& entries = golden_[list];
    for (size_t index = 0; index < entries.size(); ++index) {
      const Json& expected = entries[index][part];
      const std::string value = name(entries[index]);
      const TensorView view = executor_->View(kPlan, value);
      std::vector<std::byte> bytes(view.size_bytes());
      executor_->ReadNow(view, bytes);
      ExpectDescribed(
          Describe({bytes.data(), view.dtype, view.shape}, index), expected,
          GetParam().rounding * (expected.contains("error") ? expected["error"].number() : 0),
          part + " " + value);
    }
  }

  static std::string OwnName(const Json& entry) { return entry["name"].text(); }
  static std::string GradientName(const Json& entry) {
    return std::string("d").append(OwnName(entry));
  }

  Json golden_;
  TrainConfig config_;
  ImageData data_;
  std::unique_ptr<TrainBatches> batches_;
  std::unique_ptr<Executor> executor_;
};

TEST_P(TorchGoldenTest, TenStepsFollowPyTorch) {
  // Another math library may round initial weights differently; they are drawn, not summed.
  ExpectAll("parameters", "start", OwnName);
  const Json& losses = golden_["losses"];
  double error = 0;  // errors of a step persist, so the largest so far counts
  for (size_t step = 0; step < losses.size(); ++step) {
    error = std::max(error, losses[step]["error"].get<double>());
    const double expected = losses[step]["value"].get<double>();
    // The loss is a mean over the batch of numbers of its own size.
    const double floor = kKernelFactor * kFloatRounding *
                         std::sqrt(static_cast<double>(config_.batch)) * std::abs(expected);
    ExpectNear(Step(step), expected, kTorchFactor * GetParam().rounding * error + floor,
               "loss of step " + std::to_string(step + 1));
    if (step > 0) continue;
    ExpectAll("parameters", "gradient", GradientName);
    ExpectAll("parameters", "first", OwnName);
    ExpectAll("statistics", "first", OwnName);
  }
  ExpectAll("parameters", "last", OwnName);
  ExpectAll("statistics", "last", OwnName);
}

// The small network with every instruction set of the machine, the large one with the default.
std::vector<GoldenCase> Cases() {
  std::vector<GoldenCase> cases = {{"wrn_28_2", "auto"}};
  for (const std::string_view simd : SupportedSimdTargets()) {
    cases.push_back({"wrn_10_1", std::string(simd)});
  }
  cases.push_back({"wrn_28_2", "auto", {"winograd"}, kWinogradRounding});
  cases.push_back({"wrn_10_1", "auto", {"winograd"}, kWinogradRounding});
  return cases;
}

std::string NameOf(const testing::TestParamInfo<GoldenCase>& test) {
  const bool plain = test.param.kernel_options.empty();
  return test.param.name + "_" + test.param.simd +
         (plain ? "" : "_" + *test.param.kernel_options.begin());
}

INSTANTIATE_TEST_SUITE_P(Networks, TorchGoldenTest, testing::ValuesIn(Cases()), NameOf);

// In fp32: the rounding of tf32 is larger than the errors of the kernels.
INSTANTIATE_TEST_SUITE_P(
    CudaNetworks, TorchGoldenTest,
    testing::Values(GoldenCase{"wrn_28_2", "auto", {"fp32"}, 1, DeviceKind::kCuda},
                    GoldenCase{"wrn_10_1", "auto", {"fp32"}, 1, DeviceKind::kCuda}),
    NameOf);

}  // namespace
}  // namespace thimble
