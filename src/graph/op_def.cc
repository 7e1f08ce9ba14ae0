#include "thimble/graph/op_def.h"

#include <algorithm>

namespace thimble {
namespace {

size_t PortIndex(const std::string& op, const std::vector<OpPort>& ports, std::string_view name) {
  for (size_t index = 0; index < ports.size(); ++index) {
    if (ports[index].name == name) return index;
  }
  THIMBLE_CHECK(false, "op '{}' has no port '{}'", op, name);
  return 0;
}

}  // namespace

OpDef& OpDef::AddPort(std::vector<OpPort>& ports, OpPort port) {
  ports.push_back(std::move(port));
  THIMBLE_CHECK(ports.size() <= internal::kMaxPorts);
  return *this;
}

OpDef& OpDef::Input(std::string name) {
  return AddPort(inputs_, {.name = std::move(name), .is_number = true});
}

OpDef& OpDef::Input(std::string name, DType dtype) {
  return AddPort(inputs_, {.name = std::move(name), .dtype = dtype});
}

OpDef& OpDef::FilterInput(std::string name) {
  return AddPort(inputs_, {.name = std::move(name), .is_number = true, .is_filter = true});
}

OpDef& OpDef::StateInput(std::string name) {
  return AddPort(inputs_, {.name = std::move(name), .is_number = true, .may_be_q8 = true});
}

OpDef& OpDef::StateOutput(std::string name) {
  return AddPort(outputs_, {.name = std::move(name), .is_number = true, .may_be_q8 = true});
}

OpDef& OpDef::OptionalInput(std::string name) {
  ++num_optional_inputs_;
  return Input(std::move(name));
}

OpDef& OpDef::OptionalInput(std::string name, DType dtype) {
  ++num_optional_inputs_;
  return Input(std::move(name), dtype);
}

OpDef& OpDef::InputList(std::string name) {
  has_input_list_ = true;
  return Input(std::move(name));
}

bool OpDef::AcceptsInputs(size_t count) const {
  const bool at_most = has_input_list_ || count <= inputs_.size();
  return at_most && count + num_optional_inputs_ >= inputs_.size();
}

const OpPort& OpDef::InputPort(size_t input) const {
  return inputs_[std::min(input, inputs_.size() - 1)];
}

OpDef& OpDef::Output(std::string name) {
  return AddPort(outputs_, {.name = std::move(name), .is_number = true});
}

OpDef& OpDef::Output(std::string name, DType dtype) {
  return AddPort(outputs_, {.name = std::move(name), .dtype = dtype});
}

OpDef& OpDef::Attribute(std::string name, AttributeValue default_value) {
  attributes_.Set(std::move(name), std::move(default_value));
  return *this;
}

OpDef& OpDef::ShapeRule(ShapeFunction rule) {
  shape_rule_ = std::move(rule);
  return *this;
}

OpDef& OpDef::Gradient(GradientFunction rule) {
  gradient_ = std::move(rule);
  return *this;
}

OpDef& OpDef::NoGradient(std::string reason) {
  no_gradient_reason_ = std::move(reason);
  return *this;
}

OpDef& OpDef::OutputMayReuse(std::string_view output, std::string_view input) {
  reuses_.emplace_back(OutputIndex(output), InputIndex(input));
  return *this;
}

OpDef& OpDef::CheapToRebuild() {
  cheap_to_rebuild_ = true;
  return *this;
}

OpDef& OpDef::RebuildWith(std::string op, const std::vector<std::string_view>& inputs,
                          const std::vector<std::string_view>& outputs) {
  rebuild_rule_.op = std::move(op);
  for (std::string_view input : inputs) rebuild_rule_.inputs.push_back(InputIndex(input));
  for (std::string_view output : outputs) rebuild_rule_.outputs.push_back(OutputIndex(output));
  return *this;
}

OpDef& OpDef::Flops(FlopFunction flops) {
  flops_ = std::move(flops);
  return *this;
}

OpDef& OpDef::Kernels(std::vector<Kernel> kernels) {
  kernels_ = std::move(kernels);
  return *this;
}

size_t OpDef::InputIndex(std::string_view input) const { return PortIndex(name_, inputs_, input); }
size_t OpDef::OutputIndex(std::string_view output) const {
  return PortIndex(name_, outputs_, output);
}

bool OpDef::MayReuse(size_t output, size_t input) const {
  return std::find(reuses_.begin(), reuses_.end(), std::pair(output, input)) != reuses_.end();
}

void OpRegistry::Add(OpDef op) {
  const bool is_new = index_.emplace(op.name(), ops_.size()).second;
  THIMBLE_CHECK(is_new, "two ops named '{}'", op.name());
  ops_.push_back(std::move(op));
}

const OpDef* OpRegistry::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &ops_[found->second];
}

const OpDef& OpRegistry::Get(std::string_view name) const {
  const OpDef* op = Find(name);
  THIMBLE_CHECK(op != nullptr, "no op '{}'", name);
  return *op;
}

ShapeFunction SameAs(size_t input) {
  return [input](const OpCall& call) -> Result<std::vector<Shape>> {
    return std::vector<Shape>{call.inputs[input]};
  };
}

FlopFunction PerOutputElement(int64_t flops) {
  return [flops](const OpCall& call) { return flops * call.outputs[0].elements(); };
}

FlopFunction PerInputElement(int64_t flops) {
  return [flops](const OpCall& call) { return flops * call.inputs[0].elements(); };
}

}  // namespace thimble
