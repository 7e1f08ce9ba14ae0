// CheckGradient: a gradient rule against the complex step. For a function f that is analytic,
// f(x + ihv) = f(x) + ih f'(x)v + O(h^2): the imaginary part is the derivative along v, and with a
// tiny h it is exact up to rounding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"
#include "tests/support/tolerance.h"
#include "thimble/base/philox.h"
#include "thimble/grad/differentiate.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using Complex = std::complex<double>;

// Streams of random numbers, different from those of the inputs.
constexpr uint32_t kCotangentStream = 10000;
constexpr uint32_t kDirectionStream = 20000;

struct DifferentiatedOp {
  Graph graph;
  std::vector<ValueId> inputs;
  ValueId cotangent;
  std::vector<size_t> wanted;      // inputs that have a gradient
  std::vector<ValueId> gradients;  // one for each of them
};

DifferentiatedOp Build(const PreparedCase& prepared) {
  DifferentiatedOp built;
  const OpCase& op_case = prepared.op_case;
  std::vector<ValueId> wrt;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const OpPort& port = prepared.op.InputPort(i);
    built.inputs.push_back(
        built.graph.AddValue({port.name, op_case.inputs[i], port.dtype, Role::kInput, {}, {}}));
    const auto& constants = op_case.constant_inputs;
    const bool constant = std::find(constants.begin(), constants.end(), i) != constants.end();
    if (port.dtype != DType::kF32 || constant) continue;
    built.wanted.push_back(i);
    wrt.push_back(built.inputs[i]);
  }
  built.cotangent =
      built.graph.AddValue({"cotangent", prepared.outputs[0], DType::kF32, Role::kInput, {}, {}});
  NodeSpec spec;
  spec.op = op_case.op;
  spec.inputs = built.inputs;
  spec.attributes = prepared.attributes;
  const auto outputs = AppendNode(built.graph, BuiltinOps(), spec);
  EXPECT_TRUE(outputs.ok()) << outputs.error().message;
  if (!outputs.ok()) return built;
  const auto gradients =
      Differentiate(built.graph, BuiltinOps(), {{(*outputs)[0], built.cotangent}}, wrt);
  EXPECT_TRUE(gradients.ok()) << ToString(op_case) << ": " << gradients.error().message;
  if (gradients.ok()) built.gradients = *gradients;
  return built;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double DotOfMagnitudes(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] * b[i]);
  return sum;
}

double SumOfMagnitudes(const std::vector<double>& numbers) {
  double sum = 0;
  for (double number : numbers) sum += std::abs(number);
  return sum;
}

// Derivatives of dot(first output, cotangent).
class ComplexStep {
 public:
  ComplexStep(const PreparedCase& prepared, const std::vector<ReferenceTensor<double>>& inputs,
              const std::vector<double>& cotangent)
      : prepared_(prepared), cotangent_(cotangent), moved_(inputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      moved_[i].numbers.assign(inputs[i].numbers.begin(), inputs[i].numbers.end());
      moved_[i].integers = inputs[i].integers;
      moved_[i].bytes = inputs[i].bytes;
    }
  }

  // When `input` moves along `direction`.
  double Along(size_t input, const std::vector<double>& direction) {
    constexpr double kStep = 1e-100;  // its square is negligible
    std::vector<Complex>& numbers = moved_[input].numbers;
    for (size_t k = 0; k < direction.size(); ++k) numbers[k].imag(kStep * direction[k]);
    const auto outputs = RunReferenceOp<Complex>(prepared_.op, prepared_.call(), moved_);
    for (Complex& number : numbers) number.imag(0);
    double sum = 0;
    for (size_t i = 0; i < cotangent_.size(); ++i) {
      sum += outputs[0].numbers[i].imag() / kStep * cotangent_[i];
    }
    return sum;
  }

 private:
  const PreparedCase& prepared_;
  const std::vector<double>& cotangent_;
  std::vector<ReferenceTensor<Complex>> moved_;
};

// Dense directions test all elements at once.
std::vector<std::vector<double>> DenseDirections(uint64_t seed, size_t count) {
  constexpr uint32_t kDense = 3;
  std::vector<std::vector<double>> directions;
  for (uint32_t k = 0; k < kDense; ++k) {
    directions.push_back(RandomNormals(seed, kDirectionStream + k, count));
  }
  return directions;
}

// Single elements show which index is wrong.
std::vector<std::vector<double>> SingleDirections(size_t count) {
  constexpr size_t kSingles = 12;
  std::vector<std::vector<double>> directions;
  for (size_t k = 0; k < std::min(count, kSingles); ++k) {
    // Spread over the tensor; the last one is its last element.
    const size_t element = count <= kSingles ? k : (count - 1) * k / (kSingles - 1);
    directions.emplace_back(count, 0.0)[element] = 1;
  }
  return directions;
}

// One list for each input that has a gradient.
using DirectionLists = std::vector<std::vector<std::vector<double>>>;

void CompareAtScale(const PreparedCase& prepared, const DifferentiatedOp& built, double scale,
                    const DirectionLists& lists) {
  const OpCase& op_case = prepared.op_case;
  const auto inputs = RandomInputs(prepared, scale);
  const auto cotangent = RandomNormals(op_case.seed, kCotangentStream,
                                       static_cast<size_t>(prepared.outputs[0].elements()));
  std::vector<ReferenceTensor<double>> values(built.graph.values.size());
  for (size_t i = 0; i < inputs.size(); ++i) values[built.inputs[i].index()] = inputs[i];
  values[built.cotangent.index()].numbers = cotangent;
  RunReferenceGraph(built.graph, BuiltinOps(), values);
  const auto& y = values[built.graph.nodes[0].outputs[0].index()].numbers;
  // Formulas subtract from 1 (softmax), so terms are at least as large as the cotangent.
  const double least_magnitude = DotOfMagnitudes(y, cotangent) + SumOfMagnitudes(cotangent);
  const double sum_size = SumSize(prepared, 0);
  ComplexStep complex_step(prepared, inputs, cotangent);

  for (size_t w = 0; w < built.wanted.size(); ++w) {
    const size_t input = built.wanted[w];
    const auto& gradient = values[built.gradients[w].index()].numbers;
    ASSERT_EQ(gradient.size(), inputs[input].numbers.size());
    const auto& directions = lists[w];
    for (size_t d = 0; d < directions.size(); ++d) {
      const double expected = complex_step.Along(input, directions[d]);
      const double actual = Dot(gradient, directions[d]);
      const double magnitude =
          std::abs(expected) + DotOfMagnitudes(gradient, directions[d]) + least_magnitude;
      const double tolerance = GradientTolerance(magnitude, sum_size);
      if (std::abs(actual - expected) <= tolerance) continue;
      ADD_FAILURE() << fmt::format(
          "gradient of '{}' along direction {} at scale {} is {}, expected {} within {} ({})",
          prepared.op.InputPort(input).name, d, scale, actual, expected, tolerance,
          ToString(op_case));
      return;
    }
  }
}

}  // namespace

void CheckGradient(const OpCase& op_case) {
  const PreparedCase prepared(op_case);
  if (!prepared.valid()) return;
  const DifferentiatedOp built = Build(prepared);
  if (built.gradients.empty()) return;
  DirectionLists dense;
  DirectionLists single;
  for (const size_t input : built.wanted) {
    const auto count = static_cast<size_t>(op_case.inputs[input].elements());
    dense.push_back(DenseDirections(op_case.seed, count));
    single.push_back(SingleDirections(count));
  }
  for (double scale : {0.1, 1.0, 10.0}) CompareAtScale(prepared, built, scale, dense);
  // Which element goes where is the same at any scale.
  CompareAtScale(prepared, built, 1.0, single);
}

}  // namespace thimble
