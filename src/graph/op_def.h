// OpDef: the complete definition of an op: its signature, shapes, gradient, cost, kernels.
//
//   OpDef Make_relu() {
//     return OpDef("relu").Input("x").Output("y").ShapeRule(SameAs(0))
//         .Gradient([](GradientBuilder& g) {
//           g.AddTo("x", g.Emit("relu_grad", {g.Out("y"), g.GradOf("y")})[0]);
//         })
//         .OutputMayReuse("y", "x").Flops(PerOutputElement(1))
//         .CpuKernel<ReluCpu>("ReluCpu").CudaKernel<ReluCuda>("ReluCuda")
//         .Reference<ReluReference>();
//   }
//
// An op is one folder in ops/ and one line in ops/op_list.inc; dispatch, tests and tables follow
// from it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/kernel.h"
#include "thimble/graph/reference.h"

namespace thimble {

// The interface through which a gradient rule reads its node and appends backward nodes. Everything
// that the backward pass keeps alive is thus an edge of the graph.
class GradientBuilder {
 public:
  virtual ~GradientBuilder() = default;
  virtual ValueId In(std::string_view input) const = 0;
  virtual ValueId Out(std::string_view output) const = 0;
  // The gradient of an output. Requires that it has one; see HasGrad.
  virtual ValueId GradOf(std::string_view output) const = 0;
  virtual bool HasGrad(std::string_view output) const = 0;
  // Whether this input's gradient is needed; no if it is left out. Rules skip gradients that are
  // not.
  virtual bool Wants(std::string_view input) const = 0;
  virtual const Attributes& attributes() const = 0;
  virtual const Shape& ShapeOf(ValueId value) const = 0;
  // Appends a backward node; returns its outputs.
  virtual std::vector<ValueId> Emit(std::string_view op, std::vector<ValueId> inputs,
                                    Attributes attributes = {}) = 0;
  // `gradient` is a part of the gradient of `input`; parts are summed.
  virtual void AddTo(std::string_view input, ValueId gradient) = 0;
  // The sum of the parts added to this input's gradient so far; an invalid id if there are none or
  // the gradient is not needed. A rule whose op can add this sum to its own part passes the result
  // to Replace, which saves an add node.
  virtual ValueId SumSoFar(std::string_view input) const = 0;
  virtual void Replace(std::string_view input, ValueId sum) = 0;
};

using ShapeFunction = std::function<Result<std::vector<Shape>>(const OpCall&)>;
using FlopFunction = std::function<int64_t(const OpCall&)>;
using GradientFunction = std::function<void(GradientBuilder&)>;

// Accepts numbers, stored in any type for them, or exactly one type.
struct OpPort {
  std::string name;
  DType dtype = DType::kF32;  // of a number: the type unless the technique `precision` changes it
  bool is_number = false;
  bool is_filter = false;
  bool may_be_q8 = false;

  bool Accepts(DType stored) const {
    if (stored == DType::kQ8) return may_be_q8;
    return is_number ? IsNumber(stored) : stored == dtype;
  }
};

// How to recompute the first output of a node, bit-identically and with less work, once some of its
// other outputs are known: by this op, from these inputs and outputs of the node, in this order.
struct RebuildRule {
  std::string op = {};  // empty: only by running the node again
  std::vector<size_t> inputs = {};
  std::vector<size_t> outputs = {};
};

class OpDef {
 public:
  explicit OpDef(std::string name) : name_(std::move(name)) {}

  // Numbers, or exactly one type.
  OpDef& Input(std::string name);
  OpDef& Input(std::string name, DType dtype);
  // An input with the filters of a convolution, (O, KH, KW, C). Files store such a parameter as (O,
  // C, KH, KW), as PyTorch does.
  OpDef& FilterInput(std::string name);
  // State of an optimizer: numbers that may also be stored in 8 bits.
  OpDef& StateInput(std::string name);
  OpDef& StateOutput(std::string name);
  // An input that nodes may leave out, with all inputs after it: numbers, or exactly one type.
  OpDef& OptionalInput(std::string name);
  OpDef& OptionalInput(std::string name, DType dtype);
  // One or more inputs of numbers, after all others.
  OpDef& InputList(std::string name);
  OpDef& Output(std::string name);
  OpDef& Output(std::string name, DType dtype);
  // Every attribute a node may carry, with its default (whose type it must have).
  OpDef& Attribute(std::string name, AttributeValue default_value);
  // Computes output shapes from input shapes and attributes, or says why they do not match.
  OpDef& ShapeRule(ShapeFunction rule);
  OpDef& Gradient(GradientFunction rule);
  // For ops without a gradient; the reason is shown when one is requested.
  OpDef& NoGradient(std::string reason);
  // The kernels also work if both have the same address. The planner decides whether they do.
  OpDef& OutputMayReuse(std::string_view output, std::string_view input);
  // Norms and activations: a pass or two over memory. `--recompute cheap` rebuilds their outputs.
  OpDef& CheapToRebuild();
  // See RebuildRule. Attributes that both ops have are copied.
  OpDef& RebuildWith(std::string op, const std::vector<std::string_view>& inputs,
                     const std::vector<std::string_view>& outputs);
  OpDef& Flops(FlopFunction flops);
  // Adds a kernel (see MakeKernel); the best comes first. Plans are saved with its name. CUDA
  // kernels are ignored in builds without CUDA, where nothing defines their functions.
  template <class Type>
  OpDef& CpuKernel(std::string_view name);
  template <class Type>
  OpDef& CudaKernel(std::string_view name);
  OpDef& Kernels(std::vector<Kernel> kernels);  // replaces all kernels
  // The formula, which also becomes the last kernel.
  template <class Formula>
  OpDef& Reference();

  const std::string& name() const { return name_; }
  const std::vector<OpPort>& inputs() const { return inputs_; }
  // Whether a node may have this many inputs, and the port of one of them.
  bool AcceptsInputs(size_t count) const;
  const OpPort& InputPort(size_t input) const;
  const std::vector<OpPort>& outputs() const { return outputs_; }
  const Attributes& default_attributes() const { return attributes_; }
  const GradientFunction& gradient() const { return gradient_; }
  const std::string& no_gradient_reason() const { return no_gradient_reason_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }  // best first, reference last
  const ReferenceSet& reference() const { return reference_; }
  size_t InputIndex(std::string_view input) const;    // requires that it exists
  size_t OutputIndex(std::string_view output) const;  // requires that it exists
  bool MayReuse(size_t output, size_t input) const;
  bool cheap_to_rebuild() const { return cheap_to_rebuild_; }
  const RebuildRule& rebuild_rule() const { return rebuild_rule_; }

  Result<std::vector<Shape>> InferShapes(const OpCall& call) const { return shape_rule_(call); }
  int64_t CountFlops(const OpCall& call) const { return flops_ ? flops_(call) : 0; }

 private:
  OpDef& AddPort(std::vector<OpPort>& ports, OpPort port);

  std::string name_;
  std::vector<OpPort> inputs_;
  size_t num_optional_inputs_ = 0;  // the last ones
  bool has_input_list_ = false;     // the last port stands for one or more inputs
  std::vector<OpPort> outputs_;
  Attributes attributes_;
  ShapeFunction shape_rule_;
  GradientFunction gradient_;
  std::string no_gradient_reason_;
  std::vector<std::pair<size_t, size_t>> reuses_;  // (output, input)
  bool cheap_to_rebuild_ = false;
  RebuildRule rebuild_rule_;
  FlopFunction flops_;
  std::vector<Kernel> kernels_;
  ReferenceSet reference_;
};

// All ops by name. Built once from the list in ops/ and passed as an argument; tests may add their
// own.
class OpRegistry {
 public:
  void Add(OpDef op);  // requires a name that is not taken
  const OpDef* Find(std::string_view name) const;
  const OpDef& Get(std::string_view name) const;  // requires that it exists
  const std::vector<OpDef>& ops() const { return ops_; }

 private:
  std::vector<OpDef> ops_;
  std::map<std::string, size_t, std::less<>> index_;  // by name: index in ops_
};

// Shape rule: one output, shaped like this input.
ShapeFunction SameAs(size_t input);
// Cost: this many operations per element of the first output or, for the second function, the first
// input.
FlopFunction PerOutputElement(int64_t flops);
FlopFunction PerInputElement(int64_t flops);

namespace internal {

inline constexpr size_t kMaxPorts = 12;

template <class Formula>
void RunReferenceAsKernel(const KernelCall& call) {
  std::array<Shape, kMaxPorts> in_shapes;
  std::array<Shape, kMaxPorts> out_shapes;
  std::array<const void*, kMaxPorts> in_data{};
  std::array<void*, kMaxPorts> out_data{};
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    in_shapes[i] = call.inputs[i].shape;
    in_data[i] = call.inputs[i].data;
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    out_shapes[i] = call.outputs[i].shape;
    out_data[i] = call.outputs[i].data;
  }
  const OpCall op{{in_shapes.data(), call.inputs.size()},
                  {out_shapes.data(), call.outputs.size()},
                  call.attributes};
  Formula::template Run<float>(ReferenceCall<float>{
      op, {in_data.data(), call.inputs.size()}, {out_data.data(), call.outputs.size()}});
}

}  // namespace internal

template <class Type>
OpDef& OpDef::CpuKernel(std::string_view name) {
  kernels_.push_back(MakeKernel<Type>(name, DeviceKind::kCpu));
  return *this;
}

template <class Type>
OpDef& OpDef::CudaKernel([[maybe_unused]] std::string_view name) {
#ifdef THIMBLE_WITH_CUDA
  kernels_.push_back(MakeKernel<Type>(name, DeviceKind::kCuda));
#endif
  return *this;
}

template <class Formula>
OpDef& OpDef::Reference() {
  reference_ = MakeReference<Formula>();
  struct AsKernel {
    static void Run(const KernelCall& call) { internal::RunReferenceAsKernel<Formula>(call); }
  };
  kernels_.push_back(MakeKernel<AsKernel>("reference", DeviceKind::kCpu));
  return *this;
}

}  // namespace thimble
