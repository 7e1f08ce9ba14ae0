// Comma-separated values.
#pragma once

#include <string>

namespace thimble {

// One field of a row, quoted where it has to be. Names come from model files: whatever they hold, a
// field stays one field.
std::string CsvField(const std::string& text);

}  // namespace thimble
