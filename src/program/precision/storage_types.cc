#include "thimble/program/precision/storage_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace thimble {
namespace {

constexpr std::array<StoredCategory, kNumStoredCategories> kCategories = {
    StoredCategory::kModel, StoredCategory::kOptimizer, StoredCategory::kGradients,
    StoredCategory::kActivations, StoredCategory::kActivationGradients};

std::optional<DType> TypeNamed(std::string_view name) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8}) {
    if (OptionName(type) == name) return type;
  }
  return std::nullopt;
}

std::optional<StoredCategory> CategoryNamed(std::string_view name) {
  for (const StoredCategory category : kCategories) {
    if (Name(category) == name) return category;
  }
  return std::nullopt;
}

Result<void> ParseEntry(std::string_view entry, StorageTypes& types) {
  const size_t equals = std::min(entry.find('='), entry.size());
  const auto category = CategoryNamed(entry.substr(0, equals));
  if (!category || equals == entry.size()) {
    return BadInput(fmt::format(
        "'{}': expected CATEGORY=TYPE, where CATEGORY is model, optimizer, gradients, activations "
        "or activation-gradients",
        entry));
  }
  const bool may_be_q8 = *category == StoredCategory::kOptimizer;
  const auto type = TypeNamed(entry.substr(equals + 1));
  if (!type || (*type == DType::kQ8 && !may_be_q8)) {
    return BadInput(fmt::format("'{}': {} can be stored as fp32, fp16{} bf16{}", entry,
                                Name(*category), may_be_q8 ? "," : " or",
                                may_be_q8 ? " or q8" : "; only the optimizer's state as q8"));
  }
  types.Set(*category, *type);
  return {};
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

// Inputs have none.
std::optional<StoredCategory> CategoryOf(const Graph& graph, const Value& value) {
  switch (value.role) {
    case Role::kParameter:
    case Role::kStatistic:
      return StoredCategory::kModel;
    case Role::kState:
      return StoredCategory::kOptimizer;
    case Role::kAccumulator:
      return StoredCategory::kGradients;
    case Role::kActivation:
    case Role::kCache:
      return StoredCategory::kActivations;
    case Role::kGradient: {
      const bool of_parameter =
          value.gradient_of.valid() && graph.value(value.gradient_of).role == Role::kParameter;
      return of_parameter ? StoredCategory::kGradients : StoredCategory::kActivationGradients;
    }
    case Role::kInput:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string_view Name(StoredCategory category) {
  switch (category) {
    case StoredCategory::kModel:
      return "model";
    case StoredCategory::kOptimizer:
      return "optimizer";
    case StoredCategory::kGradients:
      return "gradients";
    case StoredCategory::kActivations:
      return "activations";
    case StoredCategory::kActivationGradients:
      return "activation-gradients";
  }
  return "?";
}

std::string_view OptionName(DType type) {
  switch (type) {
    case DType::kF32:
      return "fp32";
    case DType::kF16:
      return "fp16";
    default:
      return Name(type);
  }
}

Result<StorageTypes> ParsePrecision(std::string_view precision) {
  StorageTypes types;
  const bool mixed = precision == "mixed16";
  const auto type = mixed ? DType::kF16 : TypeNamed(precision);
  if (!type || *type == DType::kQ8) {
    return BadInput(fmt::format("'{}': expected fp32, fp16, bf16 or mixed16", precision));
  }
  types.types.fill(*type);
  if (mixed) {
    types.Set(StoredCategory::kModel, DType::kF32);
    types.Set(StoredCategory::kOptimizer, DType::kF32);
  }
  return types;
}

Result<void> ParseStore(std::string_view store, StorageTypes& types) {
  while (!store.empty()) {
    const size_t comma = std::min(store.find(','), store.size());
    THIMBLE_TRY(ParseEntry(store.substr(0, comma), types));
    store.remove_prefix(std::min(comma + 1, store.size()));
  }
  return {};
}

std::string Describe(const StorageTypes& types) {
  const StorageTypes::Type first = types.types.front();
  const auto is_first = [&](StorageTypes::Type type) { return type == first; };
  if (first && std::ranges::all_of(types.types, is_first)) {
    return fmt::format("all numbers {}", OptionName(*first));
  }
  std::string text;
  for (const StoredCategory category : kCategories) {
    if (!types[category]) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Name(category),
                        OptionName(*types[category]));
  }
  return text;
}

bool HasShortState(const StorageTypes& types) {
  return types[StoredCategory::kModel].value_or(DType::kF32) != DType::kF32 ||
         types[StoredCategory::kOptimizer].value_or(DType::kF32) != DType::kF32;
}

void StoreAs(const StorageTypes& types, const OpRegistry& ops, std::vector<NamedGraph>& graphs) {
  SameTypeSets sets(graphs);
  const auto wanted = [&](size_t g, ValueId id) {
    const Value& value = graphs[g].graph.value(id);
    const auto category = CategoryOf(graphs[g].graph, value);
    return category ? types[*category].value_or(value.dtype) : value.dtype;
  };
  std::vector<bool> stays(sets.size(), false);
  for (size_t g = 0; g < graphs.size(); ++g) {
    const Graph& graph = graphs[g].graph;
    for (size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].role == Role::kInput) stays[sets.SetOf(g, ValueId(v))] = true;
    }
    const auto check = [&](ValueId id, const OpPort& port) {
      if (!port.is_number || !port.Accepts(wanted(g, id))) stays[sets.SetOf(g, id)] = true;
    };
    for (const Node& node : graph.nodes) {
      const OpDef& op = ops.Get(node.op);
      for (size_t i = 0; i < node.inputs.size(); ++i) check(node.inputs[i], op.InputPort(i));
      for (size_t o = 0; o < node.outputs.size(); ++o) check(node.outputs[o], op.outputs()[o]);
    }
  }
  for (size_t g = 0; g < graphs.size(); ++g) {
    for (size_t v = 0; v < graphs[g].graph.values.size(); ++v) {
      if (stays[sets.SetOf(g, ValueId(v))]) continue;
      graphs[g].graph.values[v].dtype = wanted(g, ValueId(v));
    }
  }
}

}  // namespace thimble
