#include "thimble/program/sparsity/sparse_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/tensor/pattern.h"

namespace thimble {
namespace {

bool MatchesOne(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  name.remove_prefix(star);
  for (size_t skipped = 0; skipped <= name.size(); ++skipped) {
    if (MatchesOne(pattern, name.substr(skipped))) return true;
  }
  return false;
}

// The filters of all convolutions of the forward pass, in the order in which they are used.
std::vector<ValueId> Filters(const Graph& graph, const OpRegistry& ops) {
  std::vector<ValueId> filters;
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::kForward) continue;
    const OpDef& op = ops.Get(node.op);
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      const Value& value = graph.value(node.inputs[input]);
      if (!op.InputPort(input).is_filter || value.role != Role::kParameter) continue;
      filters.push_back(node.inputs[input]);
    }
  }
  return filters;
}

bool IsLarge(const Value& filter) { return filter.shape[1] * filter.shape[2] > 1; }

Result<void> CheckUsedOnce(const Graph& graph, const std::vector<ValueId>& filters, ValueId id) {
  if (std::ranges::count(filters, id) == 1) return {};
  return BadInput(
      fmt::format("'{}' is used by several layers and cannot be sparse", graph.value(id).name));
}

Error NothingMatches(const Graph& graph, const std::vector<ValueId>& filters,
                     std::string_view patterns) {
  if (patterns.empty()) {
    return BadInput(
        "the model has nothing to make sparse: no convolution larger than 1x1 after the first");
  }
  if (filters.empty()) {
    return BadInput(fmt::format("'{}': the model has no convolutions to make sparse", patterns));
  }
  return BadInput(fmt::format(
      "'{}' matches no filters of a convolution; their names are {}{}", patterns,
      graph.value(filters.front()).name,
      filters.size() == 1 ? "" : fmt::format(" to {}", graph.value(filters.back()).name)));
}

}  // namespace

bool MatchesPattern(std::string_view patterns, std::string_view name) {
  while (!patterns.empty()) {
    const size_t comma = std::min(patterns.find(','), patterns.size());
    if (MatchesOne(patterns.substr(0, comma), name)) return true;
    patterns.remove_prefix(std::min(comma + 1, patterns.size()));
  }
  return false;
}

Result<SparseTensors> ChooseSparseTensors(const Graph& graph, const OpRegistry& ops,
                                          double sparsity, std::string_view patterns) {
  const std::vector<ValueId> filters = Filters(graph, ops);
  SparseTensors chosen;
  for (size_t i = 0; i < filters.size(); ++i) {
    const Value& filter = graph.value(filters[i]);
    const bool wanted =
        patterns.empty() ? i > 0 && IsLarge(filter) : MatchesPattern(patterns, filter.name);
    if (!wanted || filter.shape.elements() == 0) continue;
    THIMBLE_TRY(CheckUsedOnce(graph, filters, filters[i]));
    const int64_t elements = filter.shape.elements();
    chosen.tensors.push_back({filter.name, elements, chosen.blocks});
    chosen.blocks += PatternBlocks(elements);
    chosen.elements += elements;
    chosen.active += ActiveAtStart(elements, sparsity);
  }
  if (chosen.tensors.empty()) return NothingMatches(graph, filters, patterns);
  return chosen;
}

}  // namespace thimble
