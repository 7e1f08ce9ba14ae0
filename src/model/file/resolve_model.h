// Resolves and checks references between the parts of a model file: names, parameters, nested
// blocks.
#pragma once

#include "thimble/base/result.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// Maximum nesting of blocks, counted from [[layers]].
inline constexpr int kMaxBlockDepth = 32;

// Sets the indices of the layers that `from` and `with` name. Fails, with the place in the file, if
// no earlier layer has that name, a name is used twice, a parameter is unknown or never used, or
// blocks are nested in a cycle or too deeply. Unused blocks are checked too.
Result<void> ResolveModel(ModelDescription& model);

}  // namespace thimble
