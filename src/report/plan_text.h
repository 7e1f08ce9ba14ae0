// A plan for people: where the bytes of the arena go at the peak.
#pragma once

#include <string>

#include "thimble/report/plan_answer.h"

namespace thimble {

// Totals, categories and largest values at the peak of the answer's plan.
std::string PlanText(const PlanAnswer& answer);

}  // namespace thimble
