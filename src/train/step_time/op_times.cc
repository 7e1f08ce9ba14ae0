#include "thimble/train/step_time/op_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"
#include "thimble/train/options/config.h"

namespace thimble {
namespace {

constexpr size_t kTerms = 3;
using Terms = std::array<double, kTerms>;

Terms TermsOf(const NodeCost& cost) {
  return {1, static_cast<double>(cost.flops), static_cast<double>(cost.bytes)};
}

// Solves a symmetric system of the terms in `used` by elimination; the others are 0. False if it is
// singular.
bool Solve(std::array<Terms, kTerms> matrix, Terms right, unsigned used, Terms& solution) {
  const auto is_used = [used](size_t term) { return (used >> term & 1) != 0; };
  for (size_t pivot = 0; pivot < kTerms; ++pivot) {
    if (!is_used(pivot)) continue;
    if (!(matrix[pivot][pivot] > 1e-12)) return false;
    for (size_t row = 0; row < kTerms; ++row) {
      if (row == pivot || !is_used(row)) continue;
      const double factor = matrix[row][pivot] / matrix[pivot][pivot];
      for (size_t column = 0; column < kTerms; ++column) {
        matrix[row][column] -= factor * matrix[pivot][column];
      }
      right[row] -= factor * right[pivot];
    }
  }
  for (size_t term = 0; term < kTerms; ++term) {
    solution[term] = is_used(term) ? right[term] / matrix[term][term] : 0;
  }
  return true;
}

// The factors of the terms, none below 0, with the least sum of squared relative errors.
Terms Fit(const std::vector<OpSample>& samples) {
  // Columns are scaled to a mean of 1, so that they can be compared with rounding errors.
  Terms scale{};
  for (const OpSample& sample : samples) {
    const Terms terms = TermsOf(sample.cost);
    for (size_t i = 0; i < kTerms; ++i) {
      scale[i] += terms[i] / sample.seconds / static_cast<double>(samples.size());
    }
  }
  std::array<Terms, kTerms> matrix{};
  Terms right{};
  for (const OpSample& sample : samples) {
    Terms terms = TermsOf(sample.cost);
    for (size_t i = 0; i < kTerms; ++i) terms[i] /= sample.seconds * std::max(scale[i], 1e-300);
    for (size_t i = 0; i < kTerms; ++i) {
      right[i] += terms[i];
      for (size_t j = 0; j < kTerms; ++j) matrix[i][j] += terms[i] * terms[j];
    }
  }
  Terms best{};
  double least = 0;  // squared error, less what is the same for all
  for (unsigned used = 1; used < 1U << kTerms; ++used) {
    Terms solution{};
    if (!Solve(matrix, right, used, solution)) continue;
    if (std::any_of(solution.begin(), solution.end(), [](double x) { return !(x >= 0); })) continue;
    double error = 0;
    for (size_t i = 0; i < kTerms; ++i) error -= solution[i] * right[i];
    if (error < least) {
      least = error;
      best = solution;
    }
  }
  for (size_t i = 0; i < kTerms; ++i) best[i] /= std::max(scale[i], 1e-300);
  return best;
}

// How unlike two sizes are. The ratio of arithmetic to bytes tells shapes apart, so it counts more
// than the size.
double Distance(const NodeCost& a, const NodeCost& b) {
  const auto log = [](int64_t number) { return std::log(static_cast<double>(number) + 1); };
  const double size = log(a.bytes) - log(b.bytes);
  const double intensity = log(a.flops) - log(b.flops) - size;
  return size * size + 4 * intensity * intensity;
}

char LetterOf(const Value& value) {
  const char letter = [&] {
    switch (value.dtype) {
      case DType::kF32:
        return 'f';
      case DType::kU8:
        return 'u';
      case DType::kI32:
        return 'i';
      case DType::kF16:
        return 'h';
      case DType::kBF16:
        return 'b';
      case DType::kQ8:
        return 'q';
    }
    return '?';
  }();
  return value.is_packed() ? static_cast<char>(letter - 'a' + 'A') : letter;
}

// KiB per thread that the kernel is limited to, if that is less than it would use by default; 0: it
// is not. Rounded to a power of two.
int64_t LimitedKibibytes(const Plan& plan, const Node& node, const Kernel& kernel) {
  KernelLimits free = plan.limits;
  free.scratch_bytes_per_thread = KernelLimits().scratch_bytes_per_thread;
  if (plan.device != DeviceKind::kCpu) free.scratch_bytes_per_thread *= kThreadsOfAGpu;
  if (plan.limits.scratch_bytes_per_thread >= free.scratch_bytes_per_thread) return 0;
  const NodeShapes shapes(plan.graph, node);
  const size_t given = kernel.scratch_bytes(shapes.call(), plan.limits);
  if (given == 0 || given >= kernel.scratch_bytes(shapes.call(), free)) return 0;
  const auto limit = static_cast<double>(plan.limits.scratch_bytes_per_thread);
  return int64_t{1} << std::lround(std::log2(std::max(1.0, limit / 1024)));
}

std::string_view OpIn(std::string_view kind) { return kind.substr(0, kind.find(' ')); }

}  // namespace

CallTimes::CallTimes(std::vector<OpSample> samples) : samples_(std::move(samples)) {
  THIMBLE_CHECK(!samples_.empty(), "no samples");
  const Terms fitted = Fit(samples_);
  per_call_ = fitted[0];
  per_flop_ = fitted[1];
  per_byte_ = fitted[2];
}

double CallTimes::Fitted(const NodeCost& cost) const {
  return per_call_ + static_cast<double>(cost.flops) * per_flop_ +
         static_cast<double>(cost.bytes) * per_byte_;
}

double CallTimes::Seconds(const NodeCost& cost) const {
  constexpr double kNear = 1e-2;  // closer samples count alike
  double sum = 0;
  double weights = 0;
  for (const OpSample& sample : samples_) {
    const double distance = kNear + Distance(sample.cost, cost);
    const double weight = 1 / (distance * distance);
    sum += weight * std::log(sample.seconds / std::max(Fitted(sample.cost), 1e-12));
    weights += weight;
  }
  return Fitted(cost) * std::exp(sum / weights);
}

OpTimes::OpTimes(const Samples& samples, int threads) : threads_(threads) {
  std::vector<OpSample> all;
  Samples by_op;
  for (const auto& [kind, of_kind] : samples) {
    if (of_kind.empty()) continue;
    std::vector<OpSample>& of_op = by_op[std::string(OpIn(kind))];
    of_op.insert(of_op.end(), of_kind.begin(), of_kind.end());
    all.insert(all.end(), of_kind.begin(), of_kind.end());
    by_kind_.emplace(kind, of_kind);
  }
  for (auto& [op, of_op] : by_op) by_op_.emplace(op, std::move(of_op));
  if (!all.empty()) all_.emplace_back(std::move(all));
}

OpTimes::Samples OpTimes::samples() const {
  Samples samples;
  for (const auto& [kind, times] : by_kind_) samples[kind] = times.samples();
  return samples;
}

double OpTimes::Seconds(std::string_view kind, const NodeCost& cost) const {
  if (const auto found = by_kind_.find(kind); found != by_kind_.end()) {
    return found->second.Seconds(cost);
  }
  if (const auto found = by_op_.find(OpIn(kind)); found != by_op_.end()) {
    return found->second.Seconds(cost);
  }
  return all_.at(0).Seconds(cost);
}

std::string KindOf(const Plan& plan, const Step& step, const OpRegistry& ops) {
  const Graph& graph = plan.graph;
  const Node& node = graph.node(step.node);
  const Kernel& kernel = ops.Get(node.op).kernels()[step.kernel];
  std::string kind = fmt::format("{} {} ", node.op, kernel.name);
  for (const ValueId id : node.inputs) kind += LetterOf(graph.value(id));
  kind += '>';
  for (const ValueId id : node.outputs) kind += LetterOf(graph.value(id));
  const int64_t kibibytes = LimitedKibibytes(plan, node, kernel);
  return kibibytes > 0 ? fmt::format("{}/{}K", kind, kibibytes) : kind;
}

std::string FormatSeconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", seconds * 1e3) : fmt::format("{:.3g} s", seconds);
}

double StepSeconds(const Program& program, const OpRegistry& ops, const OpTimes& times) {
  if (times.empty()) return 0;
  double seconds = 0;
  for (size_t index = 0; index < program.plans.size(); ++index) {
    const int64_t runs = program.runs_per_step[index];
    if (runs == 0) continue;
    const Plan& plan = program.plans[index];
    double run = 0;
    for (const Step& step : plan.steps) {
      run += times.Seconds(KindOf(plan, step, ops),
                           CostOf(plan.graph, ops, plan.graph.node(step.node)));
    }
    // With fewer threads than were measured, as if all work were divided among them.
    if (plan.device == DeviceKind::kCpu) run *= 1.0 * times.threads() / plan.limits.threads;
    seconds += static_cast<double>(runs) * run;
  }
  return seconds;
}

}  // namespace thimble
