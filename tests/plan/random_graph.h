// Random graphs for tests of the planner: toy ops with various sizes, and small networks with
// branches and residual sums.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "tests/plan/toy_plan.h"
#include "thimble/base/check.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/network_builder.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble::toy {

inline Result<std::vector<Shape>> ResizedShape(const OpCall& call) {
  return std::vector<Shape>{Shape{call.attributes.Int("elements")}};
}

// The toy ops, and: resize (an output of any size, never in place), mix (like sum2, but y may reuse
// either input).
inline OpRegistry MakeRandomGraphOps() {
  OpRegistry ops = MakeOps();
  ops.Add(OpDef("resize")
              .Input("x")
              .Output("y")
              .Attribute("elements", int64_t{1})
              .ShapeRule(ResizedShape)
              .Kernels(MakeKernels<CopyKernel>()));
  ops.Add(OpDef("mix")
              .Input("a")
              .Input("b")
              .Output("y")
              .ShapeRule(SameAs(0))
              .OutputMayReuse("y", "a")
              .OutputMayReuse("y", "b")
              .Kernels(MakeKernels<CopyKernel>()));
  return ops;
}

inline const OpRegistry& RandomGraphOps() {
  static const OpRegistry* ops = new OpRegistry(MakeRandomGraphOps());
  return *ops;
}

// A graph of `num_nodes` toy nodes: values used several times or never, sums of two values of one
// shape (also of one value with itself), scratch, up to three outputs, nodes of the forward and the
// backward phase, and in half of the graphs an update with its carries as one more node.
class RandomToyGraph {
 public:
  RandomToyGraph(std::mt19937& random, size_t num_nodes) : random_(random) {
    shapes_ = {Shape{Below(40) + 1}, Shape{Below(400) + 1}, Shape{Below(30) * 16 + 16}};
    const Shape weight_shape = AnyShape();
    const ValueId w = AddInput(graph_, "w", Role::kParameter, weight_shape);
    const ValueId m = AddInput(graph_, "m", Role::kState, weight_shape);
    const bool updates = Below(2) == 0;
    values_ = {AddInput(graph_, "x", Role::kInput, AnyShape()), w};
    const size_t num_forward = num_nodes / 2 + static_cast<size_t>(Below(3));
    for (size_t i = 0; i < num_nodes; ++i) {
      AppendAny(i < num_forward ? Phase::kForward : Phase::kBackward);
    }
    for (int64_t i = 0, count = 1 + Below(3); i < count; ++i) AddOutput();
    if (updates) AppendWeightUpdate(w, m, weight_shape);
  }

  Graph Take() { return std::move(graph_); }

 private:
  int64_t Below(int64_t limit) { return static_cast<int64_t>(random_()) % limit; }
  const Shape& AnyShape() { return shapes_[static_cast<size_t>(Below(3))]; }
  ValueId Any() {
    // Mostly a recent one, so that graphs become deep.
    const int64_t count = static_cast<int64_t>(values_.size());
    const int64_t back = Below(2) == 0 ? Below(std::min<int64_t>(count, 3)) : Below(count);
    return values_[static_cast<size_t>(count - 1 - back)];
  }
  ValueId AnyLike(ValueId value) {
    std::vector<ValueId> alike;
    for (ValueId other : values_) {
      if (graph_.value(other).shape == graph_.value(value).shape) alike.push_back(other);
    }
    return alike[static_cast<size_t>(Below(static_cast<int64_t>(alike.size())))];
  }

  void AppendAny(Phase phase) {
    static constexpr const char* kOps[] = {"copy", "resize", "mix", "mix", "sum2", "blur", "split"};
    const ValueId x = Any();
    NodeSpec spec;
    spec.op = kOps[static_cast<size_t>(Below(7))];
    spec.inputs = {x};
    if (spec.op == "mix" || spec.op == "sum2") spec.inputs.push_back(AnyLike(x));
    if (spec.op == "resize") spec.attributes = {{"elements", AnyShape()[0]}};
    spec.phase = phase;
    spec.output_role = phase == Phase::kForward ? Role::kActivation : Role::kGradient;
    spec.layer = fmt::format("n{}", graph_.nodes.size());
    const auto outputs = AppendNode(graph_, RandomGraphOps(), std::move(spec)).value();
    values_.insert(values_.end(), outputs.begin(), outputs.end());
  }

  void AddOutput() {
    const ValueId value = Any();
    if (graph_.value(value).producer.valid()) graph_.outputs.push_back(value);
  }

  void AppendWeightUpdate(ValueId w, ValueId m, const Shape& shape) {
    NodeSpec spec;
    spec.op = "resize";
    spec.inputs = {values_.back()};
    spec.attributes = {{"elements", shape[0]}};
    spec.phase = Phase::kBackward;
    spec.output_role = Role::kGradient;
    spec.layer = "dw";
    const ValueId dw = AppendNode(graph_, RandomGraphOps(), std::move(spec)).value()[0];
    AppendUpdate(graph_, RandomGraphOps(), w, m, dw);
  }

  std::mt19937& random_;
  Graph graph_;
  std::vector<Shape> shapes_;
  std::vector<ValueId> values_;  // that a node may read
};

// A training graph of built-in ops: convolutions of several widths and strides, batch norm, relu
// and sums, each reading any value so far; unused values end in a linear head, and all heads are
// added up.
class RandomNetwork {
 public:
  RandomNetwork(std::mt19937& random, size_t num_layers) : random_(random) {
    const ValueId images = net_.Input(kImagesInput, {2, 8, 8, 3}, DType::kU8);
    const ValueId labels = net_.Input(kLabelsInput, {2}, DType::kI32);
    values_ = {net_.NormalizeImages(images, {0, 0, 0}, {64, 64, 64})};
    num_reads_ = {0};
    for (size_t i = 0; i < num_layers; ++i) AddLayer(fmt::format("layer{}", i));
    ValueId scores;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (num_reads_[i] > 0) continue;
      const ValueId head =
          net_.Linear(fmt::format("head{}", i), net_.GlobalAveragePool(values_[i]), 4);
      scores = scores.valid() ? net_.Add(scores, head) : head;
    }
    loss_ = net_.SoftmaxCrossEntropy(scores, labels);
  }

  // Forward only, or with backward and update. Some activations become outputs.
  Graph Take(bool with_update) {
    auto built = std::move(net_).Finish();
    THIMBLE_CHECK(built.ok(), "{}", built.error().message);
    Graph graph = std::move(built->graph);
    if (Below(2) == 0) graph.outputs.push_back(values_[Below(values_.size())]);
    if (!with_update) return graph;
    const OptimizerSpec optimizer{.momentum = Below(2) == 0 ? 0.9 : 0.0};
    const auto appended =
        thimble::AppendUpdate(graph, BuiltinOps(), loss_, {.optimizer = optimizer});
    THIMBLE_CHECK(appended.ok(), "{}", appended.error().message);
    return graph;
  }

 private:
  size_t Below(size_t limit) { return random_() % limit; }
  size_t Any() { return Below(2) == 0 ? values_.size() - 1 : Below(values_.size()); }
  size_t AnyLike(size_t index) {
    std::vector<size_t> alike;
    for (size_t other = 0; other < values_.size(); ++other) {
      if (net_.shape(values_[other]) == net_.shape(values_[index])) alike.push_back(other);
    }
    return alike[Below(alike.size())];
  }

  void AddLayer(const std::string& name) {
    const size_t x = Any();
    ++num_reads_[x];
    ValueId y;
    switch (Below(5)) {
      case 0:
        y = net_.Relu(values_[x]);
        break;
      case 1:
        y = net_.BatchNorm(name, values_[x]);
        break;
      case 2: {
        const size_t other = AnyLike(x);
        ++num_reads_[other];
        y = net_.Add(values_[x], values_[other]);
        break;
      }
      default:
        y = net_.Conv(name, values_[x],
                      {.out_channels = static_cast<int64_t>(4 + 4 * Below(3)),
                       .stride = net_.shape(values_[x])[1] > 4 && Below(3) == 0 ? 2 : 1,
                       .padding = 1});
    }
    values_.push_back(y);
    num_reads_.push_back(0);
  }

  std::mt19937& random_;
  NetworkBuilder net_{BuiltinOps(), Mode::kTrain};
  std::vector<ValueId> values_;
  std::vector<int> num_reads_;
  ValueId loss_;
};

}  // namespace thimble::toy
