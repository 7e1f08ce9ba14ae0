#include "thimble/grad/sgd.h"

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const UpdateSpec& spec) : spec_(spec) {}

  Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                            const UpdateNumbers& numbers) const override {
    Attributes attributes = RoundingOf(spec_, of);
    attributes.Set("weight_decay", spec_.optimizer.weight_decay);
    if (spec_.optimizer.momentum == 0) {
      return Append(graph, ops, "sgd_update_plain",
                    {of.parameter, of.gradient, numbers.learning_rate}, std::move(attributes), of,
                    numbers, {of.parameter});
    }
    THIMBLE_ASSIGN_OR_RETURN(const ValueId momentum, Momentum(graph, of.parameter));
    attributes.Set("momentum", spec_.optimizer.momentum);
    attributes.Set("nesterov", int64_t{spec_.optimizer.nesterov});
    SetFeedback(attributes);
    return Append(graph, ops, "sgd_update",
                  {of.parameter, of.gradient, momentum, numbers.learning_rate},
                  std::move(attributes), of, numbers, {of.parameter, momentum});
  }

  std::string WhyNotByParts() const override {
    if (spec_.optimizer.momentum == 0) return "without momentum there is no state to add to";
    if (spec_.optimizer.nesterov) return "Nesterov needs the old momentum and the whole gradient";
    return {};
  }

  Result<void> AppendGather(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                            const UpdateNumbers& numbers) const override {
    THIMBLE_ASSIGN_OR_RETURN(const ValueId momentum, Momentum(graph, of.parameter));
    Attributes attributes = RoundingOf(spec_, of);
    attributes.Set("weight_decay", spec_.optimizer.weight_decay);
    attributes.Set("momentum", spec_.optimizer.momentum);
    return Append(graph, ops, "sgd_gather", {of.parameter, of.gradient, momentum, numbers.seen},
                  std::move(attributes), of, numbers, {momentum});
  }

  Result<void> AppendApply(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                           const UpdateNumbers& numbers) const override {
    THIMBLE_ASSIGN_OR_RETURN(const ValueId momentum, Momentum(graph, of.parameter));
    UpdateNumbers read = numbers;
    read.gradient_factor = {};  // the gradients are in the momentum already
    const std::vector<ValueId> inputs = {of.parameter, momentum, numbers.learning_rate};
    Attributes attributes = RoundingOf(spec_, of);
    if (!spec_.error_feedback) {
      return Append(graph, ops, "sgd_apply", inputs, std::move(attributes), of, read,
                    {of.parameter});
    }
    attributes.Set("momentum", spec_.optimizer.momentum);
    SetFeedback(attributes);
    return Append(graph, ops, "sgd_apply_feedback", inputs, std::move(attributes), of, read,
                  {of.parameter, momentum});
  }

 private:
  static Result<ValueId> Momentum(Graph& graph, ValueId parameter) {
    return AddStateOf(graph, kMomentumPrefix, parameter);
  }

  // Errors wait in the momentum as what the present learning rate would need. If the rate then
  // rises by a factor, as after a restart, they return as much too large: 128 units of bf16 are
  // half a weight. Rates of 1/125 of the first are common, and need all of the feedback.
  void SetFeedback(Attributes& attributes) const {
    constexpr double kMostRise = 128;
    if (!spec_.error_feedback) return;
    attributes.Set("feedback_rate", spec_.largest_learning_rate / kMostRise);
  }

  static Result<void> Append(Graph& graph, const OpRegistry& ops, std::string_view op,
                             std::vector<ValueId> inputs, Attributes attributes,
                             const ParameterGradient& of, const UpdateNumbers& numbers,
                             const std::vector<ValueId>& carried) {
    if (numbers.update.valid()) inputs.push_back(numbers.update);
    if (numbers.gradient_factor.valid()) inputs.push_back(numbers.gradient_factor);
    return AppendCarryingNode(graph, ops,
                              {.op = op,
                               .inputs = std::move(inputs),
                               .attributes = std::move(attributes),
                               .phase = of.phase,
                               .layer = of.layer},
                              carried);
  }

  UpdateSpec spec_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeSgd(const UpdateSpec& spec) {
  return std::make_unique<Sgd>(spec);
}

}  // namespace thimble
