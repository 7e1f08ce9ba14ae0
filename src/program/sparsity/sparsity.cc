#include "thimble/program/sparsity/sparsity.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "thimble/grad/optimizer.h"
#include "thimble/program/sparsity/pack_graph.h"
#include "thimble/program/sparsity/sparse_tensors.h"

namespace thimble {
namespace {

constexpr const char* kNotSparse = "0";

// The states of other optimizers are not packed, and rewiring does not move them.
constexpr const char* kSparseOptimizer = "sgd";

Result<double> ParseSparsity(std::string_view value) {
  double sparsity = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), sparsity);
  const bool is_number = code == std::errc() && end == value.data() + value.size();
  if (!is_number || !(sparsity >= 0) || !(sparsity < 1)) {
    return BadInput(fmt::format("'{}': expected a fraction from 0 up to, but not, 1", value));
  }
  return sparsity;
}

// Hundredths of the weights, if they are expected to cost accuracy that can be told apart.
std::optional<LeverStep> HundredthBetween(const LeverStep& milder, const LeverStep& stronger) {
  constexpr double kSamePoints = 0.03;
  if (stronger.lost_points - milder.lost_points < kSamePoints) return std::nullopt;
  const Result<double> low = ParseSparsity(milder.value);
  const Result<double> high = ParseSparsity(stronger.value);
  if (!low.ok() || !high.ok()) return std::nullopt;
  const double middle = std::round(50 * (*low + *high)) / 100;
  constexpr double kSame = 0.005;
  if (middle - *low < kSame || *high - middle < kSame) return std::nullopt;
  const double share = (middle - *low) / (*high - *low);
  return LeverStep{fmt::format("{:.2g}", middle),
                   std::lerp(milder.lost_points, stronger.lost_points, share)};
}

const Lever& SparsityLever() {
  static const Lever lever{
      .name = "sparsity",
      .takes = "FRACTION",
      .help = "fraction of the weights of sparse layers that are 0 and take no memory",
      .what = "store only some weights, with their gradients and momentum",
      .plain = kNotSparse,
      .decides_results = true,
      .training_only = true,
      .check = [](std::string_view value) -> Result<void> {
        THIMBLE_TRY(ParseSparsity(value));
        return {};
      },
      .worth_trying =
          [](const LeverSetting& setting) {
            return setting.value == kNotSparse && setting.optimizer == kSparseOptimizer
                       ? std::vector<std::string>{"0.8"}
                       : std::vector<std::string>{};
          },
      // docs/results/cifar10-sparse.md; 0.5 as the paper of dsr has it.
      .budget_steps = [](const LeverSetting& setting) -> std::vector<LeverStep> {
        if (setting.value != kNotSparse || setting.optimizer != kSparseOptimizer) return {};
        return {{"0.5", 0.1},  {"0.6", 0.15},   {"0.7", 0.2}, {"0.75", 0.375},
                {"0.8", 0.55}, {"0.85", 0.875}, {"0.9", 1.2}};
      },
      .between = HundredthBetween,
      .exactness =
          [](const Graph&, const LeverSetting& setting) {
            return std::string(
                Name(setting.value == kNotSparse ? Exactness::kSameBits : Exactness::kLossy));
          }};
  return lever;
}

const Lever& MethodLever() {
  static const Lever lever{
      .name = "sparse-method",
      .takes = "dsr|set|static",
      .help =
          "how sparse weights are rewired: dsr moves them between layers, set within layers, "
          "static keeps the first choice",
      .what = "how sparse weights are chosen",
      .plain = "dsr",
      .decides_results = true,
      .training_only = true};
  return lever;
}

const Lever& LayersLever() {
  static const Lever lever{
      .name = "sparse-layers",
      .takes = "NAME[,...]",
      .help =
          "convolutions to make sparse, by names of their weights in which * stands for any "
          "characters; default: those larger than 1x1 except the first",
      .what = "which layers are sparse",
      .decides_results = true,
      .training_only = true};
  return lever;
}

constexpr const char* kByLength = "auto";

// 0: by the length of the run.
Result<int64_t> ParseRewireEvery(std::string_view value) {
  int64_t steps = 0;
  if (value == kByLength) return steps;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), steps);
  if (code != std::errc() || end != value.data() + value.size() || steps < 1) {
    return BadInput(fmt::format("'{}': expected auto or a number of steps, 1 or more", value));
  }
  return steps;
}

const Lever& RewireLever() {
  static const Lever lever{
      .name = "rewire-every",
      .takes = "auto|STEPS",
      .help =
          "steps between rewirings of sparse weights; auto: by the length of the run, fewer and "
          "fewer, none at its end",
      .what = "how often sparse weights are rewired",
      .plain = kByLength,
      .decides_results = true,
      .training_only = true,
      .check = [](std::string_view value) -> Result<void> {
        THIMBLE_TRY(ParseRewireEvery(value));
        return {};
      }};
  return lever;
}

// The paper's quota for 1,451,520 weights, in proportion to their number.
int64_t QuotaFor(int64_t elements) {
  constexpr double kPaperQuota = 20'000;
  constexpr double kPaperElements = 1'451'520;
  const double quota = kPaperQuota / kPaperElements * static_cast<double>(elements);
  return std::max<int64_t>(1, std::llround(quota));
}

class Sparsity final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "sparsity", .exactness = Exactness::kLossy, .what = SparsityLever().what};
  }
  const Lever* lever() const override { return &SparsityLever(); }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    THIMBLE_ASSIGN_OR_RETURN(update.sparsity.fraction, ParseSparsity(value));
    if (update.optimizer.name != kSparseOptimizer) {
      return BadInput(fmt::format("--sparsity {}: only with --optimizer {}, not {}", value,
                                  kSparseOptimizer, update.optimizer.name));
    }
    return std::string();
  }
  Result<std::string> ChangeProgram(const std::string& /*value*/, const OpRegistry& ops,
                                    const UpdateSpec& update,
                                    std::vector<NamedGraph>& graphs) const override {
    const SparsitySpec& spec = update.sparsity;
    const Graph& first = graphs.front().graph;
    THIMBLE_ASSIGN_OR_RETURN(const SparseTensors tensors,
                             ChooseSparseTensors(first, ops, spec.fraction, spec.layers));
    for (NamedGraph& named : graphs) {
      for (const char* name : {kSparsePattern, kSparseWeights, kSparseMomentum, kSparseGradients}) {
        THIMBLE_TRY(CheckNameIsFree(named.graph, name));
      }
      FuseGradientUses(named.graph, tensors);
      PackTensors(named.graph, tensors);
    }
    if (spec.method != "static") THIMBLE_TRY(AddRewiring(ops, update, tensors, graphs));
    return fmt::format("{} of {} weights in {} layers are stored, {}", tensors.active,
                       tensors.elements, tensors.tensors.size(),
                       spec.method == "static" ? "always the same" : "rewired by " + spec.method);
  }

 private:
  // Of all pools: parts of a batch have no weight's update, updates no forward pass.
  static Result<void> AddRewiring(const OpRegistry& ops, const UpdateSpec& update,
                                  const SparseTensors& tensors, std::vector<NamedGraph>& graphs) {
    const RewiringSpec rewiring{.is_set = update.sparsity.method == "set",
                                .quota = QuotaFor(tensors.elements),
                                .seed = update.seed};
    const NamedGraph* source = &graphs.front();
    for (const NamedGraph& named : graphs) {
      if (named.graph.Find(kSparseMomentum).valid()) source = &named;
    }
    NamedGraph named{.name = kRewireName};
    THIMBLE_ASSIGN_OR_RETURN(named.graph, MakeRewiring(source->graph, ops, tensors, rewiring));
    graphs.push_back(std::move(named));
    return {};
  }
};

// How the technique `sparsity` does its work: a lever whose value becomes a member of the spec.
class SparsityDetail final : public Technique {
 public:
  using Apply = Result<void> (*)(const std::string& value, SparsitySpec& spec);
  SparsityDetail(const Lever& lever, Apply apply) : lever_(lever), apply_(apply) {}

  TechniqueInfo Info() const override {
    return {.name = lever_.name,
            .exactness = Exactness::kLossy,
            .what = lever_.what,
            .saves_bytes = false};
  }
  const Lever* lever() const override { return &lever_; }
  Result<std::string> ChangeUpdate(const std::string& value, bool /*in_parts*/,
                                   UpdateSpec& update) const override {
    THIMBLE_TRY(apply_(value, update.sparsity));
    return std::string();
  }

 private:
  const Lever& lever_;
  Apply apply_;
};

}  // namespace

std::unique_ptr<const Technique> MakeSparsity() { return std::make_unique<Sparsity>(); }
std::unique_ptr<const Technique> MakeSparseMethod() {
  return std::make_unique<SparsityDetail>(
      MethodLever(), [](const std::string& value, SparsitySpec& spec) -> Result<void> {
        spec.method = value;
        return {};
      });
}
std::unique_ptr<const Technique> MakeSparseLayers() {
  return std::make_unique<SparsityDetail>(
      LayersLever(), [](const std::string& value, SparsitySpec& spec) -> Result<void> {
        spec.layers = value;
        return {};
      });
}
std::unique_ptr<const Technique> MakeRewireEvery() {
  return std::make_unique<SparsityDetail>(
      RewireLever(), [](const std::string& value, SparsitySpec& spec) -> Result<void> {
        THIMBLE_ASSIGN_OR_RETURN(spec.rewire_every, ParseRewireEvery(value));
        return {};
      });
}

}  // namespace thimble
