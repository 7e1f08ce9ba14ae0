#include "tests/support/toy_ops.h"

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

struct ScaleReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = T(call.op.attributes.Float("factor")) * call.In(0)[i];
    }
  }
};

struct MultiplyReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = call.In(0)[i] * call.In(1)[i];
    }
  }
};

struct AddReference {
  template <class T>
  static void Run(const ReferenceCall<T>& call) {
    for (int64_t i = 0; i < call.out_shape(0).elements(); ++i) {
      call.Out(0)[i] = call.In(0)[i] + call.In(1)[i];
    }
  }
};

Result<std::vector<Shape>> SameShapes(const OpCall& call) {
  if (call.inputs[0] != call.inputs[1]) return BadInput("shapes differ");
  return std::vector<Shape>{call.inputs[0]};
}

OpDef MakeScale() {
  OpDef op("scale");
  op.Input("x").Output("y").Attribute("factor", 2.0).ShapeRule(SameAs(0));
  op.Gradient([](GradientBuilder& g) {
    g.AddTo("x", g.Emit("scale", {g.GradOf("y")}, g.attributes())[0]);
  });
  op.OutputMayReuse("y", "x").Flops(PerOutputElement(1)).Reference<ScaleReference>();
  return op;
}

OpDef MakeMultiply() {
  OpDef op("multiply");
  op.Input("a").Input("b").Output("y").ShapeRule(SameShapes);
  op.Gradient([](GradientBuilder& g) {
    const ValueId dy = g.GradOf("y");
    if (g.Wants("a")) g.AddTo("a", g.Emit("multiply", {g.In("b"), dy})[0]);
    if (g.Wants("b")) g.AddTo("b", g.Emit("multiply", {g.In("a"), dy})[0]);
  });
  op.Flops(PerOutputElement(1)).Reference<MultiplyReference>();
  return op;
}

OpDef MakeAdd() {
  OpDef op("add");
  op.Input("a").Input("b").Output("y").ShapeRule(SameShapes);
  op.Gradient([](GradientBuilder& g) {
    g.AddTo("a", g.GradOf("y"));
    g.AddTo("b", g.GradOf("y"));
  });
  op.Flops(PerOutputElement(1)).Reference<AddReference>();
  return op;
}

}  // namespace

OpRegistry ToyOps() {
  OpRegistry ops;
  ops.Add(MakeScale());
  ops.Add(MakeMultiply());
  ops.Add(MakeAdd());
  ops.Add(OpDef("blocked").Input("x").Output("y").ShapeRule(SameAs(0)).NoGradient("it is a wall"));
  ops.Add(OpDef("count").Input("x").Output("n", DType::kI32).ShapeRule(SameAs(0)).NoGradient("-"));
  return ops;
}

ValueId AddInput(Graph& graph, const std::string& name, const Shape& shape, Role role) {
  return graph.AddValue({name, shape, DType::kF32, role, {}, {}});
}

ValueId AppendToy(Graph& graph, const OpRegistry& ops, std::string_view op,
                  std::vector<ValueId> inputs, Attributes attributes) {
  NodeSpec spec;
  spec.op = op;
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  auto outputs = AppendNode(graph, ops, spec);
  THIMBLE_CHECK(outputs.ok(), "{}", outputs.error().message);
  return outputs->front();
}

}  // namespace thimble
