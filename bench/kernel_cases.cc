#include "bench/kernel_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

std::string ShapeName(const std::vector<Shape>& shapes) {
  std::vector<std::string> names;
  for (const Shape& shape : shapes)
    names.push_back(fmt::format("{}", fmt::join(shape.dims(), "x")));
  return fmt::format("{}", fmt::join(names, "_"));
}

// Integer attributes that differ from the op's default: ",stride=2".
std::string AttributeName(const OpDef& op, const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes.entries()) {
    const int64_t* number = std::get_if<int64_t>(&value);
    const AttributeValue* usual = op.default_attributes().Find(name);
    if (number == nullptr || (usual != nullptr && *usual == value)) continue;
    text += fmt::format("{}{}={}", text.empty() ? "/" : ",", name, *number);
  }
  return text;
}

std::vector<std::pair<size_t, size_t>> SharedPlaces(const Plan& plan, const Node& node) {
  std::vector<std::pair<size_t, size_t>> shared;
  for (size_t output = 0; output < node.outputs.size(); ++output) {
    for (size_t input = 0; input < node.inputs.size(); ++input) {
      if (plan.values[node.outputs[output].index()].buffer ==
          plan.values[node.inputs[input].index()].buffer) {
        shared.emplace_back(output, input);
      }
    }
  }
  return shared;
}

std::vector<const Kernel*> KernelsFor(const OpDef& op, const OpCall& call, DeviceKind device) {
  std::vector<const Kernel*> kernels;
  for (const Kernel& kernel : op.kernels()) {
    const bool last_resort = kernel.name == "reference" && !kernels.empty();
    if (kernel.device != device || last_resort || !kernel.declines(call).empty()) continue;
    kernels.push_back(&kernel);
  }
  return kernels;
}

}  // namespace

std::vector<KernelCase> DistinctKernelCases(const Plan& plan, const OpRegistry& ops) {
  std::vector<KernelCase> cases;
  for (const Step& step : plan.steps) {
    const Node& node = plan.graph.node(step.node);
    const OpDef& op = ops.Get(node.op);
    const NodeShapes shapes(plan.graph, node);
    const auto in_place = SharedPlaces(plan, node);
    for (const Kernel* kernel : KernelsFor(op, shapes.call(), plan.device)) {
      const std::string name =
          fmt::format("{}/{}/{}{}{}", op.name(), kernel->name,
                      ShapeName(shapes.inputs.empty() ? shapes.outputs : shapes.inputs),
                      AttributeName(op, node.attributes), in_place.empty() ? "" : "/in_place");
      auto known = std::find_if(cases.begin(), cases.end(),
                                [&](const KernelCase& other) { return other.name == name; });
      if (known == cases.end()) {
        cases.push_back({name, &op, kernel, shapes.inputs, shapes.outputs, node.attributes,
                         in_place, CostOf(plan.graph, ops, node), 0});
        known = cases.end() - 1;
      }
      ++known->calls_per_step;
    }
  }
  return cases;
}

}  // namespace thimble
