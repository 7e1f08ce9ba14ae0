// Optimizer: what an optimizer stores for each parameter, how it updates, and what it can do while
// backward still runs.
#pragma once

#include <memory>
#include <string>

#include "thimble/base/result.h"
#include "thimble/grad/update_spec.h"
#include "thimble/graph/graph.h"
#include "thimble/graph/op_def.h"

namespace thimble {

// Single numbers that updates read. Invalid ids: there is no such number.
struct UpdateNumbers {
  ValueId learning_rate;
  ValueId seen;             // samples in earlier parts of the batch
  ValueId update;           // number of the update
  ValueId gradient_factor;  // of the gradient; 0: it is not used
};

// One parameter and its gradient. For AppendApply, there is no gradient.
struct ParameterGradient {
  ValueId parameter = {};
  ValueId gradient = {};
  int64_t index = 0;  // of the parameter, for its random numbers
  Phase phase = Phase::kUpdate;
  std::string layer = {};
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Whether updates read the number of the update even if nothing else needs it.
  virtual bool ReadsUpdateNumber() const { return false; }

  // Appends the update of a parameter from its whole gradient.
  virtual Result<void> AppendUpdate(Graph& graph, const OpRegistry& ops,
                                    const ParameterGradient& of,
                                    const UpdateNumbers& numbers) const = 0;

  // Whether the parts of a batch can add their gradients to the optimizer's state one by one, so
  // that no array is needed for their sum. Empty if they can, otherwise the reason.
  virtual std::string WhyNotByParts() const = 0;
  // Requires that they can: adds the gradient of a part to the state; updates from the state.
  virtual Result<void> AppendGather(Graph& graph, const OpRegistry& ops,
                                    const ParameterGradient& of,
                                    const UpdateNumbers& numbers) const = 0;
  virtual Result<void> AppendApply(Graph& graph, const OpRegistry& ops, const ParameterGradient& of,
                                   const UpdateNumbers& numbers) const = 0;
};

// kBadInput for unknown names.
Result<std::unique_ptr<const Optimizer>> MakeOptimizer(const UpdateSpec& spec);

// The values of an update have fixed names, which a layer of the model may already use: then
// kBadInput.
Result<void> CheckNameIsFree(const Graph& graph, const std::string& name);
Result<ValueId> AddUpdateValue(Graph& graph, Value value);
// An array of optimizer state for a parameter: `prefix` + its name, like it.
Result<ValueId> AddStateOf(Graph& graph, const char* prefix, ValueId parameter);

// The attributes of the random rounding that `spec` asks for, of an update of this parameter.
Attributes RoundingOf(const UpdateSpec& spec, const ParameterGradient& of);

}  // namespace thimble
