// The techniques that act on a program, and the levers of all techniques.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "thimble/program/lever.h"
#include "thimble/program/technique.h"

namespace thimble {

// In the order in which they are done.
const std::vector<std::unique_ptr<const Technique>>& Techniques();

// What every program has unless it is left out: the techniques without a lever, then the passes of
// the planner that can be left out.
std::vector<TechniqueInfo> AlwaysDone();

// Those of the techniques and those of the planner: recompute, convolutions, scratch.
std::vector<const Lever*> Levers();
// nullptr where there is none.
const Lever* FindLever(std::string_view name);

// Adds a technique behind all others for as long as it lives: for tests.
class AddedTechnique {
 public:
  explicit AddedTechnique(std::unique_ptr<const Technique> technique);
  ~AddedTechnique();
  AddedTechnique(const AddedTechnique&) = delete;
  AddedTechnique& operator=(const AddedTechnique&) = delete;
};

}  // namespace thimble
