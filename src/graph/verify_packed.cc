#include "thimble/graph/verify_packed.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "thimble/tensor/packed.h"

namespace thimble {
namespace {

Error Wrong(const Value& value, const std::string& what) {
  return BadInput(fmt::format("graph: packed '{}': {}", value.name, what));
}

bool IsStored(const Graph& graph, ValueId id) {
  if (id.index() >= graph.values.size()) return false;
  const Value& value = graph.value(id);
  return IsPersistent(value.role) && !value.producer.valid() && !value.is_packed();
}

Result<void> CheckPlace(const Graph& graph, const Value& value) {
  const PackedIn& in = value.packed;
  if (!IsStored(graph, in.pool) || !in.pattern.valid() || !IsStored(graph, in.pattern)) {
    return Wrong(value, "its pool and its pattern must be dense persistent values");
  }
  const Value& pool = graph.value(in.pool);
  const Value& pattern = graph.value(in.pattern);
  if (pool.shape.rank() != 1 || pool.dtype != value.dtype) {
    return Wrong(value, fmt::format("is {}, its pool '{}' is {} {}", Name(value.dtype), pool.name,
                                    ToString(pool.shape), Name(pool.dtype)));
  }
  const int64_t end = in.first_block + PatternBlocks(value.shape.elements());
  if (pattern.dtype != DType::kI32 || in.first_block < 0 ||
      PatternWords(end) > pattern.shape.elements()) {
    return Wrong(value, fmt::format("needs blocks {} to {} of its pattern '{}', which is {} {}",
                                    in.first_block, end, pattern.name, ToString(pattern.shape),
                                    Name(pattern.dtype)));
  }
  return {};
}

// Values that are packed in one place are versions of one value.
Result<void> CheckApart(const Graph& graph) {
  std::map<std::pair<ValueId, int64_t>, ValueId> owners;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[i];
    if (!value.is_packed()) continue;
    const ValueId first = FirstVersion(graph, ValueId(i));
    const auto [owner, is_new] =
        owners.try_emplace({value.packed.pool, value.packed.tensor}, first);
    if (is_new || owner->second == first) continue;
    return Wrong(value,
                 fmt::format("has the place of '{}' in pool '{}'", graph.value(owner->second).name,
                             graph.value(value.packed.pool).name));
  }
  return {};
}

Result<void> CheckPoolsAreNotAccessed(const Graph& graph) {
  const std::vector<bool> is_pool = FindPools(graph);
  for (const Node& node : graph.nodes) {
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (ValueId id : *values) {
        if (!is_pool[id.index()]) continue;
        return BadInput(
            fmt::format("graph: {} of '{}' accesses pool '{}' as a whole, but other "
                        "values are packed in it",
                        node.op, node.layer, graph.value(id).name));
      }
    }
  }
  return {};
}

}  // namespace

Result<void> VerifyPacked(const Graph& graph) {
  for (const Value& value : graph.values) {
    if (value.is_packed()) THIMBLE_TRY(CheckPlace(graph, value));
  }
  for (const Carry& carry : graph.carries) {
    const Value& to = graph.value(carry.to);
    if (graph.value(carry.from).packed == to.packed) continue;
    return Wrong(to, fmt::format("is the next version of '{}', which is at another place",
                                 graph.value(carry.from).name));
  }
  THIMBLE_TRY(CheckApart(graph));
  return CheckPoolsAreNotAccessed(graph);
}

}  // namespace thimble
