// Ghost batch norm is microbatching in one pass: loss, gradients and statistics of a batch that is
// normalised in parts are those of the parts, weighted by their samples.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/reference_interpreter.h"
#include "tests/support/tolerance.h"
#include "thimble/base/nearly_equal_parts.h"
#include "thimble/grad/differentiate.h"
#include "thimble/model/network_builder.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/program/ghost_batch_norm/ghost_batch_norm.h"

namespace thimble {
namespace {

constexpr int64_t kSamples = 7;
using Numbers = std::vector<double>;

// Two norms, a shortcut, so that batch_norm_grad_add is used, and a classifier.
NetworkBuilder::Built MakeNetwork(int64_t batch, int64_t group) {
  NetworkBuilder net(BuiltinOps(), Mode::kTrain);
  ValueId x = net.Input("x", {batch, 3, 3, 2}, DType::kF32);
  x = net.Conv("conv1", x, {.out_channels = 5, .padding = 1});
  const ValueId y = net.Relu(net.BatchNorm("bn1", x));
  x = net.Add(net.Conv("conv2", y, {.out_channels = 5, .padding = 1}), x);
  x = net.Relu(net.BatchNorm("bn2", x));
  const ValueId labels = net.Input(kLabelsInput, {batch}, DType::kI32);
  net.SoftmaxCrossEntropy(net.Linear("fc", net.GlobalAveragePool(x), 3), labels);
  auto built = std::move(net).Finish();
  THIMBLE_CHECK(built.ok(), "{}", built.error().message);
  if (group > 0) THIMBLE_CHECK(GroupBatchNorms(built->graph, BuiltinOps(), group).ok());
  return std::move(built).value();
}

// The same numbers for a name in every graph; those of inputs depend on the sample in the batch.
double MadeNumber(const std::string& name, size_t index) {
  double number = static_cast<double>(index) + 1;
  for (char letter : name) number = 3.1 * number + letter;
  return std::sin(number);
}

void FillValue(const Value& value, int64_t first_sample, ReferenceTensor<double>& tensor) {
  tensor.Resize(value.shape, value.dtype);
  const auto count = static_cast<size_t>(value.shape.elements());
  const auto first =
      value.role == Role::kInput ? count / static_cast<size_t>(value.shape[0]) * first_sample : 0;
  for (size_t i = 0; i < count; ++i) {
    if (value.dtype == DType::kI32) tensor.integers[i] = static_cast<int32_t>((first + i) % 3);
    if (value.dtype == DType::kF32) tensor.numbers[i] = MadeNumber(value.name, first + i);
  }
}

// Loss, gradients of all parameters and next statistics of the samples from `first_sample` on.
std::map<std::string, Numbers> Compute(int64_t batch, int64_t group, int64_t first_sample) {
  Graph graph = MakeNetwork(batch, group).graph;
  std::vector<ValueId> parameters;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (graph.values[i].role == Role::kParameter) parameters.emplace_back(i);
  }
  const ValueId seed = graph.AddValue({"seed", {1}, DType::kF32, Role::kParameter, {}, {}});
  const auto gradients =
      Differentiate(graph, BuiltinOps(), {{graph.Find(kLossOutput), seed}}, parameters);
  THIMBLE_CHECK(gradients.ok(), "{}", gradients.error().message);
  std::vector<ReferenceTensor<double>> values(graph.values.size());
  for (size_t i = 0; i < values.size(); ++i) FillValue(graph.values[i], first_sample, values[i]);
  values[seed.index()].numbers = {1};
  RunReferenceGraph(graph, BuiltinOps(), values);

  std::map<std::string, Numbers> results;
  for (size_t i = 0; i < parameters.size(); ++i) {
    results[graph.value(parameters[i]).name] = values[(*gradients)[i].index()].numbers;
  }
  results["loss"] = values[graph.Find(kLossOutput).index()].numbers;
  for (const Node& node : graph.nodes) {
    if (node.op != "batch_norm") continue;
    results[node.layer + " mean"] = values[node.outputs[1].index()].numbers;
    results[node.layer + " variance"] = values[node.outputs[2].index()].numbers;
  }
  for (const Carry& carry : graph.carries) {
    results[graph.value(carry.from).name] = values[carry.to.index()].numbers;
  }
  return results;
}

class GhostGradient : public testing::TestWithParam<int64_t> {
 protected:
  GhostGradient() {
    for (int64_t part = 0; part < parts_.parts; ++part) {
      of_parts_.push_back(Compute(parts_.Size(part), 0, parts_.Begin(part)));
    }
  }
  // The weighted average of of_part(results of a part) over the parts.
  template <class OfPart>
  double Average(const OfPart& of_part) const {
    double sum = 0;
    for (int64_t part = 0; part < parts_.parts; ++part) {
      sum += parts_.Share(part) * of_part(of_parts_[static_cast<size_t>(part)]);
    }
    return sum;
  }

  const NearlyEqualParts parts_ = CutNearlyEqually(kSamples, GetParam());
  const std::map<std::string, Numbers> whole_ = Compute(kSamples, GetParam(), 0);
  std::vector<std::map<std::string, Numbers>> of_parts_;
};

constexpr double kTolerance = kGradientFactor * kDoubleRounding * 10;

TEST_P(GhostGradient, IsTheWeightedMeanOfThePartsGradients) {
  for (const char* name : {"loss", "conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight",
                           "bn2.weight", "bn2.bias", "fc.weight", "fc.bias"}) {
    const Numbers& actual = whole_.at(name);
    for (size_t i = 0; i < actual.size(); ++i) {
      EXPECT_NEAR(actual[i], Average([&](const auto& part) { return part.at(name)[i]; }),
                  kTolerance)
          << name << " " << i;
    }
  }
}

TEST_P(GhostGradient, StatisticsAreThoseOfTheParts) {
  for (const char* name : {"bn1 mean", "bn1 variance", "bn2 mean", "bn2 variance"}) {
    Numbers expected;
    for (const auto& part : of_parts_) {
      expected.insert(expected.end(), part.at(name).begin(), part.at(name).end());
    }
    ASSERT_EQ(whole_.at(name).size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(whole_.at(name)[i], expected[i], kTolerance) << name << " " << i;
    }
  }
}

// Mean of means; mean of variances plus variance of means, unbiased by the rows of the batch.
TEST_P(GhostGradient, RunningStatisticsMoveOnceByTheWholeBatch) {
  constexpr double kRows = kSamples * 9;
  for (const std::string layer : {"bn1", "bn2"}) {
    for (size_t c = 0; c < 5; ++c) {
      const double mean = Average([&](const auto& part) { return part.at(layer + " mean")[c]; });
      const double variance = Average([&](const auto& part) {
        const double distance = part.at(layer + " mean")[c] - mean;
        return part.at(layer + " variance")[c] + distance * distance;
      });
      const std::string names[] = {layer + ".running_mean", layer + ".running_var"};
      EXPECT_NEAR(whole_.at(names[0])[c], 0.9 * MadeNumber(names[0], c) + 0.1 * mean, kTolerance);
      EXPECT_NEAR(whole_.at(names[1])[c],
                  0.9 * MadeNumber(names[1], c) + 0.1 * variance * kRows / (kRows - 1), kTolerance);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, GhostGradient, testing::Values(1, 2, 3, 7));

TEST(GhostGradientTest, OtherGroupsGiveOtherGradients) {
  const Numbers plain = Compute(kSamples, 0, 0).at("conv1.weight");
  const Numbers ghost = Compute(kSamples, 3, 0).at("conv1.weight");
  double distance = 0;
  for (size_t i = 0; i < plain.size(); ++i) distance += std::abs(plain[i] - ghost[i]);
  EXPECT_GT(distance, 1e-2);
}

}  // namespace
}  // namespace thimble
