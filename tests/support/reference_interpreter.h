// Evaluates ops and whole graphs with the references, in any number type that they support: double
// for exact results, complex<double> for derivatives. Slow, simple, and independent of kernels and
// plans.
#pragma once

#include <cstdint>
#include <vector>

#include "thimble/graph/append_node.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// One tensor; only the vector of its type is used, the others are empty.
template <class T>
struct ReferenceTensor {
  std::vector<T> numbers;         // f32
  std::vector<int32_t> integers;  // i32
  std::vector<uint8_t> bytes;     // u8

  void Resize(const Shape& shape, DType dtype) {
    const size_t count = static_cast<size_t>(shape.elements());
    numbers.assign(dtype == DType::kF32 ? count : 0, T(0));
    integers.assign(dtype == DType::kI32 ? count : 0, 0);
    bytes.assign(dtype == DType::kU8 ? count : 0, 0);
  }
  void* data(DType dtype) {
    if (dtype == DType::kI32) return integers.data();
    return dtype == DType::kU8 ? static_cast<void*>(bytes.data()) : numbers.data();
  }
};

// Evaluates one op. `inputs` is not changed; the outputs are returned.
template <class T>
std::vector<ReferenceTensor<T>> RunReferenceOp(const OpDef& op, const OpCall& call,
                                               std::vector<ReferenceTensor<T>>& inputs) {
  std::vector<ReferenceTensor<T>> outputs(op.outputs().size());
  std::vector<const void*> in_data;
  std::vector<void*> out_data;
  for (size_t i = 0; i < inputs.size(); ++i)
    in_data.push_back(inputs[i].data(op.InputPort(i).dtype));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].Resize(call.outputs[i], op.outputs()[i].dtype);
    out_data.push_back(outputs[i].data(op.outputs()[i].dtype));
  }
  Select<T>(op.reference())(ReferenceCall<T>{call, in_data, out_data});
  return outputs;
}

// Runs all nodes. `values` has one entry per value of the graph; those without producer are given.
template <class T>
void RunReferenceGraph(const Graph& graph, const OpRegistry& ops,
                       std::vector<ReferenceTensor<T>>& values) {
  for (const Node& node : graph.nodes) {
    std::vector<ReferenceTensor<T>> inputs;
    for (ValueId input : node.inputs) inputs.push_back(values[input.index()]);
    const NodeShapes shapes(graph, node);
    auto outputs = RunReferenceOp<T>(ops.Get(node.op), shapes.call(), inputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      values[node.outputs[i].index()] = std::move(outputs[i]);
    }
  }
}

}  // namespace thimble
