#include "thimble/grad/adam.h"

#include "thimble/graph/append_node.h"

namespace thimble {
namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const UpdateSpec& spec) : spec_(spec) {}

  bool ReadsUpdateNumber() const override { return true; }

  Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                            const UpdateNumbers& numbers) const override {
    THIMBLE_ASSIGN_OR_RETURN(const State state, AddState(graph, of.parameter));
    std::vector<ValueId> inputs = {of.parameter, of.gradient};
    inputs.insert(inputs.end(), state.arrays.begin(), state.arrays.end());
    inputs.insert(inputs.end(), {numbers.learning_rate, numbers.update});
    std::vector<ValueId> carried = {of.parameter};
    carried.insert(carried.end(), state.arrays.begin(), state.arrays.end());
    return Append(graph, ops, state.factored ? "adam_factored_update" : "adam_update",
                  std::move(inputs), Settings(of, /*steps=*/true), of, numbers.gradient_factor,
                  carried);
  }

  std::string WhyNotByParts() const override { return {}; }

  Result<void> AppendGather(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                            const UpdateNumbers& numbers) const override {
    THIMBLE_ASSIGN_OR_RETURN(const State state, AddState(graph, of.parameter));
    std::vector<ValueId> inputs = {of.gradient};
    inputs.insert(inputs.end(), state.arrays.begin(), state.arrays.end());
    inputs.insert(inputs.end(), {numbers.seen, numbers.update});
    return Append(graph, ops, state.factored ? "adam_factored_gather" : "adam_gather",
                  std::move(inputs), Settings(of, /*steps=*/false), of, numbers.gradient_factor,
                  state.arrays);
  }

  Result<void> AppendApply(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                           const UpdateNumbers& numbers) const override {
    THIMBLE_ASSIGN_OR_RETURN(const State state, AddState(graph, of.parameter));
    std::vector<ValueId> inputs = {of.parameter};
    inputs.insert(inputs.end(), state.arrays.begin(), state.arrays.end());
    inputs.insert(inputs.end(), {numbers.learning_rate, numbers.update});
    return Append(graph, ops, state.factored ? "adam_factored_apply" : "adam_apply",
                  std::move(inputs), Settings(of, /*steps=*/true), of, /*gradient_factor=*/{},
                  {of.parameter});
  }

 private:
  // What is kept for a parameter, in the order of the ops' inputs.
  struct State {
    std::vector<ValueId> arrays;
    bool factored = false;
  };

  // A matrix whose rows and columns are together much fewer than its numbers.
  static bool IsLargeMatrix(const Shape& shape) {
    if (shape.rank() < 2 || shape.elements() == 0) return false;
    const int64_t means = shape[0] + shape.elements() / shape[0];
    return 8 * means <= shape.elements();
  }

  Result<State> AddState(Graph& graph, ValueId parameter) const {
    const Shape shape = graph.value(parameter).shape;
    // Of filters that may become sparse, state is stored where the weights are.
    const bool may_be_sparse = spec_.sparsity.fraction > 0 && shape.rank() == 4;
    State state;
    state.factored = spec_.optimizer.factored && IsLargeMatrix(shape) && !may_be_sparse;
    THIMBLE_ASSIGN_OR_RETURN(const ValueId first, AddStateOf(graph, kFirstMomentPrefix, parameter));
    state.arrays.push_back(first);
    if (!state.factored) {
      THIMBLE_ASSIGN_OR_RETURN(const ValueId root, AddStateOf(graph, kSecondRootPrefix, parameter));
      state.arrays.push_back(root);
      return state;
    }
    const std::string name = graph.value(parameter).name;
    const auto add_means = [&](const char* prefix, int64_t count) -> Result<void> {
      THIMBLE_ASSIGN_OR_RETURN(
          const ValueId means,
          AddUpdateValue(graph, {prefix + name, {count}, DType::kF32, Role::kState, {}, {}}));
      state.arrays.push_back(means);
      return {};
    };
    THIMBLE_TRY(add_means(kRowMeansPrefix, shape[0]));
    THIMBLE_TRY(add_means(kColumnMeansPrefix, shape.elements() / shape[0]));
    return state;
  }

  // The attributes of an op, which changes weights if it `steps`.
  Attributes Settings(const ParameterGradient& of, bool steps) const {
    Attributes attributes = RoundingOf(spec_, of);
    attributes.Set("beta1", spec_.optimizer.beta1);
    attributes.Set("beta2", spec_.optimizer.beta2);
    if (!steps) return attributes;
    attributes.Set("epsilon", spec_.optimizer.epsilon);
    attributes.Set("weight_decay", spec_.optimizer.weight_decay);
    return attributes;
  }

  static Result<void> Append(Graph& graph, const OpRegistry& ops, std::string_view op,
                             std::vector<ValueId> inputs, Attributes attributes,
                             const ParameterGradient& of, ValueId gradient_factor,
                             const std::vector<ValueId>& carried) {
    if (gradient_factor.valid()) inputs.push_back(gradient_factor);
    return AppendCarryingNode(graph, ops,
                              {.op = op,
                               .inputs = std::move(inputs),
                               .attributes = std::move(attributes),
                               .phase = of.phase,
                               .layer = of.layer},
                              carried);
  }

 private:
  UpdateSpec spec_;
};

}  // namespace

std::unique_ptr<const Optimizer> MakeAdam(const UpdateSpec& spec) {
  return std::make_unique<Adam>(spec);
}

}  // namespace thimble
