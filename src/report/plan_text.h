// A plan as text: what the arena holds at the peak, and what would make it smaller.
#pragma once

#include <string>

#include "thimble/report/plan_answer.h"
#include "thimble/report/text_style.h"

namespace thimble {

// Categories, largest values and totals at the peak of the answer's plan, arithmetic, techniques,
// and whether it fits.
std::string PlanText(const PlanAnswer& answer, const TextStyle& style = {});

}  // namespace thimble
