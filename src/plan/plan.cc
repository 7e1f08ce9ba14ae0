#include "thimble/plan/plan.h"

namespace thimble {

std::string_view Name(Category category) {
  switch (category) {
    case Category::kModel:
      return "model";
    case Category::kGradients:
      return "gradients";
    case Category::kOptimizer:
      return "optimizer";
    case Category::kActivations:
      return "activations";
    case Category::kTransient:
      return "transient";
    case Category::kData:
      return "data";
  }
  return "?";
}

Category CategoryOf(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  switch (value.role) {
    case Role::kParameter:
    case Role::kStatistic:
      return Category::kModel;
    case Role::kState:
      return Category::kOptimizer;
    case Role::kAccumulator:
      return Category::kGradients;
    case Role::kInput:
      return Category::kData;
    case Role::kActivation:
    case Role::kCache:
      return Category::kActivations;
    case Role::kGradient: {
      const bool of_parameter =
          value.gradient_of.valid() && graph.value(value.gradient_of).role == Role::kParameter;
      return of_parameter ? Category::kGradients : Category::kTransient;
    }
  }
  return Category::kTransient;
}

const Resident* ResidentLayout::Find(std::string_view name) const {
  for (const Resident& resident : residents) {
    if (resident.name == name) return &resident;
  }
  return nullptr;
}

}  // namespace thimble
