#include "thimble/program/microbatch/microbatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace thimble {
namespace {

constexpr const char* kWhat = "train a batch in parts and update with the sum of their gradients";

// Maximum size of a part, in samples or tokens; 0: not split.
int64_t SizeOf(std::string_view value) {
  int64_t size = 0;
  std::from_chars(value.data(), value.data() + value.size(), size);
  return size;
}

// A part has at least one sample.
NearlyEqualParts PartsOf(const BatchShape& shape, const std::string& value) {
  const int64_t size = SizeOf(value);
  if (size == 0) return {shape.samples, 1};
  return CutNearlyEqually(shape.samples, std::max<int64_t>(1, size / shape.sample_size()));
}

// Of a full batch: as if each sample, or token, were one of the batch.
NearlyEqualParts PartsOf(const LeverSetting& setting) {
  return PartsOf(BatchShape{setting.batch}, setting.value);
}

// Ten samples are few enough to show what parts save, and enough for useful batch-norm statistics.
// 500 tokens are some twenty sentences.
std::vector<std::string> WorthTrying(const LeverSetting& setting) {
  const int64_t size = setting.counts_tokens ? 500 : 10;
  if (PartsOf(setting).LargestSize() <= size) return {};
  return {std::to_string(size)};
}

// The cost of small parts is that of batch-norm statistics of few samples
// (docs/results/cifar10-statistics-size.md; single samples were not measured). Statistics of 5 cost
// a dense network nothing, but they are chosen for sparse ones (docs/results/cifar10-sparse.md).
std::vector<LeverStep> BudgetSteps(const LeverSetting& setting) {
  if (!setting.value.empty() && setting.value != "0") return {};
  std::vector<LeverStep> steps;
  if (setting.counts_tokens) {
    for (const int tokens : {2000, 1000, 500, 250, 125}) {
      if (tokens < setting.batch) steps.push_back({std::to_string(tokens)});
    }
    return steps;
  }
  for (const auto& [samples, lost_points] :
       {std::pair{50, 0.0}, {20, 0.0}, {10, 0.0}, {5, 0.4}, {2, 1.0}, {1, 5.0}}) {
    if (samples < setting.batch) steps.push_back({std::to_string(samples), lost_points});
  }
  return steps;
}

// Parts change the order of sums; with batch norm, also the samples per statistic.
std::string ExactnessOf(const Graph& forward, const LeverSetting& setting) {
  const NearlyEqualParts parts = PartsOf(setting);
  if (parts.parts == 1) return std::string(Name(Exactness::kSameBits));
  if (!HasOp(forward, "batch_norm")) return std::string(Name(Exactness::kEqual));
  const int64_t samples = parts.LargestSize();
  return fmt::format("{}: batch-norm statistics per {} sample{}", Name(Exactness::kLossy), samples,
                     samples == 1 ? "" : "s");
}

const Lever& MicrobatchLever() {
  static const Lever lever{
      .name = "microbatch",
      .takes = "N",
      .help =
          "train the batch in nearly equal parts of at most N samples (translation: "
          "tokens of the longer side)",
      .what = kWhat,
      .decides_results = true,
      .training_only = true,
      .worth_trying = WorthTrying,
      .budget_steps = BudgetSteps,
      .exactness = ExactnessOf};
  return lever;
}

class Microbatch final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "microbatch", .exactness = Exactness::kLossy, .what = kWhat};
  }
  const Lever* lever() const override { return &MicrobatchLever(); }
  std::string CutBatch(const std::string& value, const BatchShape& shape,
                       NearlyEqualParts& parts) const override {
    parts = PartsOf(shape.With(parts.total), value);
    // Batches of sentences have empty rows anyway; two sizes would be twice as many plans.
    if (shape.has_sentences() && shape.samples > 0) parts = EqualParts(parts);
    if (parts.parts == 1) return {};
    return fmt::format("{} parts of {}{} {}", parts.parts,
                       parts.total % parts.parts == 0 ? "" : "at most ", parts.LargestSize(),
                       shape.sample_size() == 1 ? "samples" : "sentences");
  }
};

}  // namespace

std::unique_ptr<const Technique> MakeMicrobatch() { return std::make_unique<Microbatch>(); }

}  // namespace thimble
