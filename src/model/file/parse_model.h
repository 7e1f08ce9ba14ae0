// Parses the text of a model file. The only code here that depends on TOML.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

// Checks everything that can be checked line by line: syntax, keys, types of values, ranges of
// numbers, spelling of names. All errors are kBadInput with `path`, line and column.
Result<ModelDescription> ParseModel(const std::string& text, const std::string& path);

}  // namespace thimble
