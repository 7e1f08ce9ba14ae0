// NameParts: the parts of a name such as "wrn-28-2:group-norm=8,dropout=0.3".
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "thimble/base/result.h"

namespace thimble {

struct NameParts {
  std::string_view family;                                             // before the colon
  std::vector<std::pair<std::string_view, std::string_view>> options;  // key and value
};

// kBadInput for an option whose key is not among the known ones, with `expected`, or that is given
// twice. Views of `name`.
Result<NameParts> ParseModelName(std::string_view name, const std::vector<std::string_view>& known,
                                 std::string_view expected);

// The value of an option that is a rate of dropout.
Result<double> ParseDropoutRate(std::string_view name, std::string_view key,
                                std::string_view value);

}  // namespace thimble
