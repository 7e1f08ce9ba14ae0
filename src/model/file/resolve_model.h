// What the parts of a model file say about each other: names, parameters, blocks inside blocks.
#pragma once

#include "thimble/base/result.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// Blocks inside blocks, counted from [[layers]].
inline constexpr int kMaxBlockDepth = 32;

// Finds the layers that `from` and `with` name and fills their indices in. An error, with its
// place, where there is no such layer above, a name is used twice, a parameter is unknown or
// never used, or blocks use each other in a circle or too deeply. Blocks that are never
// used are checked as well.
Result<void> ResolveModel(ModelDescription& model);

}  // namespace thimble
