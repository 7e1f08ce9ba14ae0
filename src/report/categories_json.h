// Bytes by category as a JSON object.
#pragma once

#include "thimble/base/json.h"
#include "thimble/plan/memory/accounting.h"

namespace thimble {

Json CategoriesJson(const CategoryBytes& bytes);

}  // namespace thimble
