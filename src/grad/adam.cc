#include "thimble/grad/adam.h"

#include "thimble/base/check.h"
#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const UpdateSpec& spec) : spec_(spec) {}

  bool ReadsUpdateNumber() const override { return true; }

  Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                            const UpdateNumbers& numbers) const override {
    const OptimizerSpec& optimizer = spec_.optimizer;
    Attributes attributes = RoundingOf(spec_, of);
    attributes.Set("beta1", optimizer.beta1);
    attributes.Set("beta2", optimizer.beta2);
    attributes.Set("epsilon", optimizer.epsilon);
    attributes.Set("weight_decay", optimizer.weight_decay);
    THIMBLE_ASSIGN_OR_RETURN(const ValueId moment,
                             AddStateOf(graph, kFirstMomentPrefix, of.parameter));
    THIMBLE_ASSIGN_OR_RETURN(const ValueId root,
                             AddStateOf(graph, kSecondRootPrefix, of.parameter));
    std::vector<ValueId> inputs = {of.parameter, of.gradient,           moment,
                                   root,         numbers.learning_rate, numbers.update};
    if (numbers.gradient_factor.valid()) inputs.push_back(numbers.gradient_factor);
    return AppendCarryingNode(graph, ops,
                              {.op = "adam_update",
                               .inputs = std::move(inputs),
                               .attributes = std::move(attributes),
                               .phase = of.phase,
                               .layer = of.layer},
                              {of.parameter, moment, root});
  }

  std::string WhyNotByParts() const override {
    return "the second moment needs the square of the whole gradient";
  }

  Result<void> AppendGather(Graph& /*graph*/, const OpRegistry& /*ops*/,
                            const ParameterGradient& /*of*/,
                            const UpdateNumbers& /*numbers*/) const override {
    THIMBLE_CHECK(false, "{}", WhyNotByParts());
  }
  Result<void> AppendApply(Graph& /*graph*/, const OpRegistry& /*ops*/,
                           const ParameterGradient& /*of*/,
                           const UpdateNumbers& /*numbers*/) const override {
    THIMBLE_CHECK(false, "{}", WhyNotByParts());
  }

 private:
  UpdateSpec spec_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAdam(const UpdateSpec& spec) {
  return std::make_unique<Adam>(spec);
}

}  // namespace thimble
