#include "thimble/graph/graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "thimble/base/check.h"

namespace thimble {
namespace {

// The number in ".2", ".3", …; 0 for anything else, including ".02".
int SuffixNumber(std::string_view suffix) {
  if (suffix.size() < 2 || suffix[0] != '.' || suffix[1] == '0') return 0;
  int number = 0;
  const char* const end = suffix.data() + suffix.size();
  const auto [parsed_end, code] = std::from_chars(suffix.data() + 1, end, number);
  return code == std::errc() && parsed_end == end ? number : 0;
}

}  // namespace

std::string_view Name(Role role) {
  switch (role) {
    case Role::kParameter:
      return "parameter";
    case Role::kStatistic:
      return "statistic";
    case Role::kInput:
      return "input";
    case Role::kActivation:
      return "activation";
    case Role::kGradient:
      return "gradient";
    case Role::kState:
      return "state";
    case Role::kAccumulator:
      return "accumulator";
    case Role::kCache:
      return "cache";
  }
  return "?";
}

std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  return "?";
}

ValueId Graph::AddValue(Value value) {
  THIMBLE_DCHECK(!Find(value.name).valid(), "two values named '{}'", value.name);
  values.push_back(std::move(value));
  return ValueId(values.size() - 1);
}

ValueId Graph::Find(std::string_view name) const {
  for (size_t index = 0; index < values.size(); ++index) {
    if (values[index].name == name) return ValueId(index);
  }
  return {};
}

std::string Graph::UniqueName(const std::string& name) const {
  if (!Find(name).valid()) return name;
  // One pass over all names: many values may share a prefix.
  std::set<int> taken;
  for (const Value& value : values) {
    if (value.name.starts_with(name))
      taken.insert(SuffixNumber(std::string_view(value.name).substr(name.size())));
  }
  int suffix = 2;
  while (taken.contains(suffix)) ++suffix;
  return fmt::format("{}.{}", name, suffix);
}

bool HasOp(const Graph& graph, std::string_view op) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.op == op; });
}

std::string LayerOf(const Graph& graph, ValueId value) {
  if (const NodeId producer = graph.value(value).producer; producer.valid()) {
    return graph.node(producer).layer;
  }
  for (const Node& node : graph.nodes) {
    if (std::find(node.inputs.begin(), node.inputs.end(), value) != node.inputs.end()) {
      return node.layer;
    }
  }
  return "";
}

ValueId FirstVersion(const Graph& graph, ValueId value) {
  while (graph.value(value).producer.valid()) {
    const auto carry = std::find_if(graph.carries.begin(), graph.carries.end(),
                                    [&](const Carry& c) { return c.to == value; });
    if (carry == graph.carries.end()) break;
    value = carry->from;
  }
  return value;
}

ValueId LastVersion(const Graph& graph, ValueId value) {
  for (;;) {
    const auto carry = std::find_if(graph.carries.begin(), graph.carries.end(),
                                    [&](const Carry& c) { return c.from == value; });
    if (carry == graph.carries.end()) return value;
    value = carry->to;
  }
}

std::vector<bool> FindPools(const Graph& graph) {
  std::vector<bool> is_pool(graph.values.size(), false);
  for (const Value& value : graph.values) {
    if (value.is_packed()) is_pool[value.packed.pool.index()] = true;
  }
  return is_pool;
}

int64_t CountParameters(const Graph& graph) {
  const std::vector<bool> is_pool = FindPools(graph);
  int64_t count = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (value.role != Role::kParameter || value.producer.valid() || is_pool[i]) continue;
    count += value.shape.elements();
  }
  return count;
}

std::string ToString(const Graph& graph) {
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::vector<std::string> parts;
    parts.reserve(ids.size());
    for (ValueId id : ids) parts.push_back("%" + graph.value(id).name);
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  std::string text;
  for (const Value& value : graph.values) {
    if (value.producer.valid()) continue;
    text += fmt::format("{} %{} {} {}\n", Name(value.role), value.name, Name(value.dtype),
                        ToString(value.shape));
  }
  for (const Node& node : graph.nodes) {
    text += fmt::format("{} = {}({}) {} [{}]\n", names(node.outputs), node.op, names(node.inputs),
                        ToString(node.attributes), Name(node.phase));
  }
  for (const Carry& carry : graph.carries) {
    text +=
        fmt::format("carry %{} -> %{}\n", graph.value(carry.from).name, graph.value(carry.to).name);
  }
  return text;
}

}  // namespace thimble
