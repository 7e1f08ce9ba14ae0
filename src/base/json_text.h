// JSON texts from files, parsed without trust. For sources only: users need not have the library.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "thimble/base/result.h"

namespace thimble {

// kBadInput for whatever the library would throw, for numbers beyond a double's range, and for
// brackets nested deeper than any file of ours: a file of nothing else would take a hundred times
// its size.
Result<nlohmann::ordered_json> ParseJson(std::string_view text);

// As text; what is not UTF-8 in it is replaced.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace thimble
