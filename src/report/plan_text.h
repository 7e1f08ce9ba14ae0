// A plan for people: where the bytes of the arena go at the peak.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/graph/op_def.h"
#include "thimble/plan/program.h"

namespace thimble {

// Totals, categories and largest values at the peak of the program's first plan.
std::string PlanText(const Program& program, const OpRegistry& ops, const std::string& title,
                     int64_t budget_bytes);

}  // namespace thimble
