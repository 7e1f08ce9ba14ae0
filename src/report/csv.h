// Comma-separated values.
#pragma once

#include <string>

namespace thimble {

// One field of a row, quoted if necessary. Names come from model files and may contain any
// characters.
std::string CsvField(const std::string& text);

}  // namespace thimble
