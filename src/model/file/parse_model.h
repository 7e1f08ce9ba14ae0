// From the text of a model file to its description. The only place that knows TOML.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// Checks everything that a line can show by itself: syntax, keys, types of values, ranges of
// numbers, spelling of names. `path` is for messages, which are all kBadInput with their place.
Result<ModelDescription> ParseModel(const std::string& text, const std::string& path);

}  // namespace thimble
