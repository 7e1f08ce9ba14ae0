// The techniques that act on a program, and the levers of all techniques.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "thimble/program/lever.h"
#include "thimble/program/technique.h"

namespace thimble {

// In the order in which they are applied.
const std::vector<std::unique_ptr<const Technique>>& Techniques();

// Everything that is applied unless it is left out: the techniques without a lever, then the passes
// of the planner that can be left out.
std::vector<TechniqueInfo> AlwaysDone();

// The levers of the techniques, then those of the planner: recompute, convolutions, scratch.
std::vector<const Lever*> Levers();
// nullptr if there is none.
const Lever* FindLever(std::string_view name);

// For tests: adds a technique after all others during its lifetime.
class AddedTechnique {
 public:
  explicit AddedTechnique(std::unique_ptr<const Technique> technique);
  ~AddedTechnique();
  AddedTechnique(const AddedTechnique&) = delete;
  AddedTechnique& operator=(const AddedTechnique&) = delete;
};

}  // namespace thimble
