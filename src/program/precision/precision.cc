#include "thimble/program/precision/precision.h"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <optional>

namespace thimble {
namespace {

constexpr const char* kPlain = "fp32";

std::optional<DType> TypeOf(std::string_view value) {
  if (value == "fp16") return DType::kF16;
  if (value == "bf16") return DType::kBF16;
  return std::nullopt;
}

const Lever& PrecisionLever() {
  static const Lever lever{
      .name = "precision",
      .takes = "fp32|fp16|bf16",
      .help = "type in which weights, optimizer state, activations and gradients are stored",
      .what = "store numbers in 16 bits",
      .plain = kPlain,
      .decides_results = true,
      .worth_trying =
          [](const LeverSetting& setting) {
            return setting.value == kPlain ? std::vector<std::string>{"fp16"}
                                           : std::vector<std::string>{};
          },
      .exactness =
          [](const Graph&, const LeverSetting& setting) {
            const bool lossy = setting.value != kPlain;
            return std::string(Name(lossy ? Exactness::kLossy : Exactness::kSameBits));
          }};
  return lever;
}

// The values of all graphs in sets that must have one type: the versions of a persistent value, in
// all graphs.
class SameTypeSets {
 public:
  explicit SameTypeSets(const std::vector<NamedGraph>& graphs) {
    for (const NamedGraph& named : graphs) {
      first_.push_back(parents_.size());
      for (const Value& value : named.graph.values) {
        parents_.push_back(parents_.size());
        if (!IsPersistent(value.role)) continue;
        const auto [known, is_new] = named_.emplace(value.name, parents_.back());
        if (!is_new) Join(known->second, parents_.back());
      }
      for (const Carry& carry : named.graph.carries) {
        Join(first_.back() + carry.from.index(), first_.back() + carry.to.index());
      }
    }
  }

  size_t SetOf(size_t graph, ValueId value) { return Root(first_[graph] + value.index()); }
  size_t size() const { return parents_.size(); }

 private:
  size_t Root(size_t index) {
    while (parents_[index] != index) index = parents_[index] = parents_[parents_[index]];
    return index;
  }
  void Join(size_t a, size_t b) { parents_[Root(b)] = Root(a); }

  std::vector<size_t> first_;  // by graph
  std::vector<size_t> parents_;
  std::map<std::string, size_t> named_;
};

class Precision final : public Technique {
 public:
  TechniqueInfo Info() const override {
    return {.name = "precision", .exactness = Exactness::kLossy, .what = PrecisionLever().what};
  }
  const Lever* lever() const override { return &PrecisionLever(); }

  Result<std::string> ChangeProgram(const std::string& value, const OpRegistry& ops,
                                    std::vector<NamedGraph>& graphs) const override {
    const std::optional<DType> type = TypeOf(value);
    if (!type) return std::string();
    SameTypeSets sets(graphs);
    std::vector<bool> needs_f32(sets.size(), false);
    for (size_t g = 0; g < graphs.size(); ++g) {
      const Graph& graph = graphs[g].graph;
      for (size_t v = 0; v < graph.values.size(); ++v) {
        if (graph.values[v].role == Role::kInput) needs_f32[sets.SetOf(g, ValueId(v))] = true;
      }
      for (const Node& node : graph.nodes) {
        const OpDef& op = ops.Get(node.op);
        for (size_t i = 0; i < node.inputs.size(); ++i) {
          if (!op.inputs()[i].is_number) needs_f32[sets.SetOf(g, node.inputs[i])] = true;
        }
        for (size_t o = 0; o < node.outputs.size(); ++o) {
          if (!op.outputs()[o].is_number) needs_f32[sets.SetOf(g, node.outputs[o])] = true;
        }
      }
    }
    for (size_t g = 0; g < graphs.size(); ++g) {
      std::vector<Value>& values = graphs[g].graph.values;
      for (size_t v = 0; v < values.size(); ++v) {
        if (!needs_f32[sets.SetOf(g, ValueId(v))]) values[v].dtype = *type;
      }
    }
    return fmt::format("numbers in {}; statistics, softmax and loss in f32", Name(*type));
  }
};

}  // namespace

std::unique_ptr<const Technique> MakePrecision() { return std::make_unique<Precision>(); }

}  // namespace thimble
