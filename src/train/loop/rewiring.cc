#include "thimble/train/loop/rewiring.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "thimble/grad/training_graph.h"
#include "thimble/program/sparsity/pack_graph.h"
#include "thimble/tensor/pattern.h"

namespace thimble {
namespace {

// The elements of each sparse tensor, in the order of the pattern.
std::vector<int64_t> ElementsOf(const Program& program) {
  std::vector<int64_t> elements;
  for (const Value& value : program.plans.front().graph.values) {
    if (!value.is_packed() || value.role != Role::kParameter || value.producer.valid()) continue;
    const auto tensor = static_cast<size_t>(value.packed.tensor);
    elements.resize(std::max(elements.size(), tensor + 1));
    elements[tensor] = value.shape.elements();
  }
  return elements;
}

std::span<int32_t> PatternOf(const Executor& executor) {
  const auto bytes = executor.ResidentBytes(kSparsePattern);
  return {reinterpret_cast<int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t)};
}

}  // namespace

void InitializeSparsity(Executor& executor, const SparsitySpec& sparsity, uint64_t seed) {
  const std::vector<int64_t> elements = ElementsOf(executor.program());
  if (elements.empty()) return;
  DrawPattern(PatternOf(executor), elements, sparsity.fraction, seed);
  if (executor.program().residents.Find(kSparseThreshold) == nullptr) return;
  constexpr float kFirstThreshold = 1e-3F;  // the paper's
  std::memcpy(executor.ResidentBytes(kSparseThreshold).data(), &kFirstThreshold,
              sizeof(kFirstThreshold));
}

Result<void> CheckPatternOf(const Executor& executor) {
  const Graph& graph = executor.program().plans.front().graph;
  const std::vector<int64_t> elements = ElementsOf(executor.program());
  if (elements.empty()) return {};
  return CheckPattern(PatternOf(executor), elements,
                      graph.value(graph.Find(kSparseWeights)).shape.elements());
}

bool RewiresAfter(int64_t step, int64_t num_steps, int64_t every) {
  if (every > 0) return step > 0 && step % every == 0;
  struct Stretch {
    double end;  // share of the steps
    int64_t factor;
  };
  constexpr Stretch kStretches[] = {{0.125, 1}, {0.4, 2}, {0.7, 4}, {0.95, 8}};
  constexpr double kIntervals = 1000;  // of the first phase, in the whole run
  const auto steps = static_cast<double>(num_steps);
  const int64_t interval = std::max<int64_t>(kLeastStepsApart, std::llround(steps / kIntervals));
  for (const Stretch& stretch : kStretches) {
    if (static_cast<double>(step) < stretch.end * steps) {
      return step > 0 && step % (interval * stretch.factor) == 0;
    }
  }
  return false;
}

RewiringReport Rewiring::Run(int64_t step) {
  executor_.Prepare(*plan_);
  WriteNumber(executor_, executor_.View(*plan_, kUpdateInput), static_cast<int32_t>(step));
  executor_.Run(*plan_);
  RewiringReport report;
  report.moved = ReadNumber<int32_t>(executor_, executor_.View(*plan_, kSparseMoved));
  const auto threshold = ReadNumber<float>(executor_, executor_.View(*plan_, kSparseThreshold));
  report.threshold = static_cast<double>(threshold);
  const TensorView pattern = executor_.View(*plan_, kSparsePattern);
  std::vector<int32_t> words(static_cast<size_t>(pattern.shape.elements()));
  executor_.ReadNow(pattern, std::as_writable_bytes(std::span(words)));
  int64_t first_block = 0;
  const int64_t blocks = BlocksOfPattern(pattern.shape.elements());
  int64_t tensor = 0;
  for (const int64_t elements : ElementsOf(executor_.program())) {
    const PackedPlace place = PackedPlaceIn(words.data(), blocks, first_block, elements, tensor++);
    report.active.push_back(static_cast<int64_t>(place.count()));
    first_block += PatternBlocks(elements);
  }
  return report;
}

}  // namespace thimble
