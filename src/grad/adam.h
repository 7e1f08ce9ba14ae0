// Adam with decoupled weight decay (ops/adam_update): keeps two arrays, the first moment and the
// root of the second; or, if it is factored, of matrices only means of rows and columns.
#pragma once

#include <memory>

#include "thimble/grad/optimizer.h"

namespace thimble {

// + name of the parameter.
inline constexpr const char* kFirstMomentPrefix = "adam_m.";
inline constexpr const char* kSecondRootPrefix = "adam_root.";
inline constexpr const char* kRowMeansPrefix = "adam_rows.";
inline constexpr const char* kColumnMeansPrefix = "adam_columns.";

std::unique_ptr<const Optimizer> MakeAdam(const UpdateSpec& spec);

}  // namespace thimble
