// Graph: what one update of a network computes, as a plain value.
//
// Values are written once. State that lives from step to step (parameters, statistics, optimizer
// state) is a value without a producer; an update node makes its next version, and a Carry says
// that the two share the same memory:
//
//   weight ──────────┬─> conv2d ──> …            carry: weight → weight.next
//   dweight ─> sgd_update ─> weight.next, momentum.next
//
// State that changes more than once in a step is a chain of carries:
//
//   pool → pool.next → pool.next.2               three versions, one place in memory
//
// A version overwrites the one before it, so every node that reads a version runs before the node
// that makes the next one. The next step starts from the last version.
//
// Packed values (PackedIn) are in a pool, one persistent value for all of them. Each has versions
// of its own, although their places in the pool depend on data: they never share a number. Nodes
// access a pool either through its values or as a whole.
//
// Nodes are in an order in which they can run, versions included; all nodes of a phase run before
// the next phase, wherever they are in the list. Nothing here depends on memory or devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/base/strong_id.h"
#include "thimble/graph/attributes.h"
#include "thimble/tensor/dtype.h"
#include "thimble/tensor/shape.h"

namespace thimble {

using ValueId = StrongId<struct ValueTag>;
using NodeId = StrongId<struct NodeTag>;

enum class Role {
  kParameter,   // trained
  kStatistic,   // stored with the parameters, not trained (batch-norm running averages)
  kInput,       // written by the caller before each step: batch, labels, learning rate
  kActivation,  // computed forward
  kGradient,    // gradient of a parameter or activation, see Value::gradient_of
  kState,       // optimizer state: momentum, moments
  // Sums over the parts of a batch. They live from part to part and are not needed between steps.
  kAccumulator,
  // What runs of a group of plans (Program) hand to each other: keys and values of a translation.
  // Only plans of the group have memory for it, and no file holds it.
  kCache,
};
std::string_view Name(Role role);

// Lives from run to run.
constexpr bool IsPersistent(Role role) {
  return role == Role::kParameter || role == Role::kStatistic || role == Role::kState ||
         role == Role::kAccumulator || role == Role::kCache;
}

enum class Phase { kForward, kBackward, kUpdate };
std::string_view Name(Phase phase);

// Maximum elements of a tensor, so that sums of byte counts need no overflow checks.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;

// Where a packed value is: in a pool that it shares with others (tensor/packed.h). Pool and pattern
// are persistent values of the graph.
struct PackedIn {
  ValueId pool;  // invalid: the value is dense and has memory of its own
  ValueId pattern;
  int64_t first_block = 0;  // of the pattern
  int64_t tensor = 0;       // index among the values of the pool
  friend bool operator==(const PackedIn&, const PackedIn&) = default;
};

struct Value {
  std::string name;  // unique in its graph
  Shape shape;
  DType dtype = DType::kF32;
  Role role = Role::kActivation;
  NodeId producer;      // invalid for persistent values and inputs
  ValueId gradient_of;  // for Role::kGradient: whose gradient (or a part of it) this is
  PackedIn packed = {};

  bool is_packed() const { return packed.pool.valid(); }
  // Memory of its own: packed values have none.
  size_t size_bytes() const {
    return is_packed() ? 0 : StorageBytes(dtype, static_cast<size_t>(shape.elements()));
  }
  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  std::string op;  // name of its OpDef
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
  Phase phase = Phase::kForward;
  std::string layer;  // for people: the layer this work belongs to, "block1.layer.0.conv1"

  friend bool operator==(const Node&, const Node&) = default;
};

// `to` is the next version of `from` and overwrites it. Versions form chains that begin at a
// persistent value without a producer; a value has at most one next version.
struct Carry {
  ValueId from;
  ValueId to;
  friend bool operator==(const Carry&, const Carry&) = default;
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Carry> carries;
  std::vector<ValueId> outputs;  // read by the caller after the step, so alive until its end

  const Value& value(ValueId id) const { return values[id.index()]; }
  const Node& node(NodeId id) const { return nodes[id.index()]; }

  // Requires a name that is not taken.
  ValueId AddValue(Value value);
  // Returns an invalid id if there is none.
  ValueId Find(std::string_view name) const;
  // `name`, or `name` with the smallest ".2", ".3", … that makes it unique.
  std::string UniqueName(const std::string& name) const;

  friend bool operator==(const Graph&, const Graph&) = default;
};

bool HasOp(const Graph& graph, std::string_view op);

// The layer that a value belongs to: that of its producer or, if it has none, of its first reader.
// Empty if it has neither.
std::string LayerOf(const Graph& graph, ValueId value);

// The first version in the chain of this value, which has no producer, and the last, from which the
// next step starts. Both are the value itself if nothing is carried.
ValueId FirstVersion(const Graph& graph, ValueId value);
ValueId LastVersion(const Graph& graph, ValueId value);

// By value: whether other values are packed in it.
std::vector<bool> FindPools(const Graph& graph);

// Number of elements in all parameters; packed ones count as if they were dense.
int64_t CountParameters(const Graph& graph);

// One line per node: "%y = conv2d(%x, %w) stride=1 …".
std::string ToString(const Graph& graph);

}  // namespace thimble
