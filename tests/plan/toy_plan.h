// Ops, graphs and plans for tests of the plan verifier: as small as possible, and made without the
// planners. Every buffer has its own offset, so that a test knows exactly which fault it plants.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"
#include "thimble/graph/op_def.h"
#include "thimble/plan/plan.h"

namespace thimble::toy {

inline constexpr size_t kScratchBytes = 80;

// Indices into the kernels of every toy op.
enum KernelIndex : size_t { kCpuKernel, kCudaKernel, kDecliningKernel };

struct CopyKernel {
  static void Run(const KernelCall&) {}
};
struct BlurKernel {
  static void Run(const KernelCall&) {}
  static size_t ScratchBytes(const OpCall&, const KernelLimits& limits) {
    return kScratchBytes * static_cast<size_t>(limits.threads);
  }
};
inline std::string_view Declines(const OpCall&) { return "never in the mood"; }

template <class Type>
std::vector<Kernel> MakeKernels() {
  return {MakeKernel<Type>("toy", DeviceKind::kCpu, &Always),
          MakeKernel<Type>("toy_cuda", DeviceKind::kCuda, &Always),
          MakeKernel<Type>("toy_picky", DeviceKind::kCpu, &Declines)};
}

// copy: never in place. sum2: y may reuse a, not b. blur: needs scratch. update: both outputs may
// reuse their old versions. split: two outputs.
inline OpRegistry MakeOps() {
  const auto two = [](const OpCall& call) -> Result<std::vector<Shape>> {
    return std::vector<Shape>{call.inputs[0], call.inputs[0]};
  };
  OpRegistry ops;
  ops.Add(
      OpDef("copy").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels(MakeKernels<CopyKernel>()));
  ops.Add(OpDef("sum2")
              .Input("a")
              .Input("b")
              .Output("y")
              .ShapeRule(SameAs(0))
              .OutputMayReuse("y", "a")
              .Kernels(MakeKernels<CopyKernel>()));
  ops.Add(
      OpDef("blur").Input("x").Output("y").ShapeRule(SameAs(0)).Kernels(MakeKernels<BlurKernel>()));
  ops.Add(OpDef("split").Input("x").Output("y").Output("z").ShapeRule(two).Kernels(
      MakeKernels<CopyKernel>()));
  ops.Add(OpDef("update")
              .Input("w")
              .Input("m")
              .Input("dw")
              .Output("w_next")
              .Output("m_next")
              .ShapeRule(two)
              .OutputMayReuse("w_next", "w")
              .OutputMayReuse("m_next", "m")
              .Kernels(MakeKernels<CopyKernel>()));
  return ops;
}

inline ValueId AddInput(Graph& graph, std::string name, Role role, const Shape& shape) {
  return graph.AddValue({std::move(name), shape, DType::kF32, role, {}, {}});
}

inline std::vector<ValueId> Append(Graph& graph, const OpRegistry& ops, std::string_view op,
                                   std::vector<ValueId> inputs, std::vector<std::string> names,
                                   Phase phase = Phase::kForward) {
  NodeSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.phase = phase;
  spec.output_role = phase == Phase::kBackward ? Role::kGradient : Role::kActivation;
  spec.output_names = std::move(names);
  return AppendNode(graph, ops, std::move(spec)).value();
}

// Appends the update of `w` and `m` by `dw`, with its carries.
inline void AppendUpdate(Graph& graph, const OpRegistry& ops, ValueId w, ValueId m, ValueId dw) {
  const auto next = Append(graph, ops, "update", {w, m, dw}, {"w.next", "m.next"}, Phase::kUpdate);
  graph.values[next[0].index()].role = Role::kParameter;
  graph.values[next[1].index()].role = Role::kState;
  graph.carries = {{w, next[0]}, {m, next[1]}};
}

// Appends the next versions of `w` and `m`, made from them and `dw`, and returns these.
inline std::pair<ValueId, ValueId> AppendVersions(Graph& graph, const OpRegistry& ops, ValueId w,
                                                  ValueId m, ValueId dw, Phase phase) {
  const auto appended = AppendCarryingNode(
      graph, ops, {.op = "update", .inputs = {w, m, dw}, .phase = phase}, {w, m});
  THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
  return {LastVersion(graph, w), LastVersion(graph, m)};
}

// One step of training in miniature; all values have 24 elements, 96 bytes.
//   0  a = copy(x)      2  c = blur(b)          4  dw = copy(c)   [backward]
//   1  b = sum2(a, w)   3  loss = sum2(b, c)    5  w.next, m.next = update(w, m, dw)
inline Graph MakeTrainingGraph(const OpRegistry& ops) {
  Graph graph;
  const ValueId x = AddInput(graph, "x", Role::kInput, {24});
  const ValueId w = AddInput(graph, "w", Role::kParameter, {24});
  const ValueId m = AddInput(graph, "m", Role::kState, {24});
  const ValueId a = Append(graph, ops, "copy", {x}, {"a"})[0];
  const ValueId b = Append(graph, ops, "sum2", {a, w}, {"b"})[0];
  const ValueId c = Append(graph, ops, "blur", {b}, {"c"})[0];
  graph.outputs = Append(graph, ops, "sum2", {b, c}, {"loss"});
  const ValueId dw = Append(graph, ops, "copy", {c}, {"dw"}, Phase::kBackward)[0];
  AppendUpdate(graph, ops, w, m, dw);
  return graph;
}

// The steps at which a value is written and last used, with nodes in graph order.
inline LiveRange LifeOf(const Graph& graph, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  LiveRange live{producer.valid() ? producer.index() : 0, 1};
  live.end = live.first + 1;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& inputs = graph.nodes[i].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) live.end = i + 1;
  }
  const auto& outputs = graph.outputs;
  if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
    live.end = graph.nodes.size();
  }
  return IsPersistent(graph.value(id).role) ? LiveRange{0, graph.nodes.size()} : live;
}

class NaivePlanner {
 public:
  explicit NaivePlanner(Graph graph) {
    plan_.graph = std::move(graph);
    plan_.values.resize(plan_.graph.values.size());
  }

  // Residents first, with one that this graph does not use; then every value; then scratch.
  Plan Run() {
    PlaceResidents();
    for (size_t i = 0; i < plan_.graph.values.size(); ++i) PlaceValue(ValueId(i));
    for (size_t i = 0; i < plan_.graph.values.size(); ++i) {
      const ValueId first = FirstVersion(plan_.graph, ValueId(i));
      plan_.values[i].buffer = plan_.values[first.index()].buffer;
    }
    for (size_t i = 0; i < plan_.graph.nodes.size(); ++i) {
      plan_.steps.push_back({NodeId(i), kCpuKernel, {}});
      if (plan_.graph.nodes[i].op != "blur") continue;
      plan_.steps.back().scratch = AddBuffer({"scratch of " + std::to_string(i),
                                              kScratchBytes,
                                              Take(kScratchBytes),
                                              {i, i + 1},
                                              false});
    }
    plan_.arena_bytes = end_bytes_;
    return std::move(plan_);
  }

 private:
  size_t Take(size_t size_bytes) {
    const size_t offset = end_bytes_;
    end_bytes_ += (size_bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    return offset;
  }

  BufferId AddBuffer(Placement placement) {
    plan_.placements.push_back(std::move(placement));
    return BufferId(plan_.placements.size() - 1);
  }

  void PlaceResidents() {
    auto& residents = plan_.residents.residents;
    residents.push_back({"ring", 128, Take(128), Category::kData});
    for (const Value& value : plan_.graph.values) {
      if (!IsPersistent(value.role) || value.producer.valid()) continue;
      residents.push_back({value.name, value.size_bytes(), Take(value.size_bytes()),
                           value.role == Role::kState ? Category::kOptimizer : Category::kModel});
    }
    plan_.residents.end_bytes = end_bytes_;
  }

  void PlaceValue(ValueId id) {
    const Value& value = plan_.graph.value(id);
    ValuePlace& place = plan_.values[id.index()];
    place.live = LifeOf(plan_.graph, id);
    if (!IsPersistent(value.role)) {
      place.buffer =
          AddBuffer({value.name, value.size_bytes(), Take(value.size_bytes()), place.live, false});
      return;
    }
    for (const Resident& resident : plan_.residents.residents) {
      if (resident.name != value.name) continue;
      place.buffer = AddBuffer({value.name, value.size_bytes(), resident.offset, place.live, true});
    }
  }

  Plan plan_;
  size_t end_bytes_ = 0;
};

}  // namespace thimble::toy
