// Parses a model file that describes a network for translation: the [translator] table.
#pragma once

#include <string>

#include "thimble/base/result.h"
#include "thimble/model/translator.h"

namespace thimble {

inline constexpr const char* kTranslatorTable = "translator";

// Whether the text is a file with that table; its content may be wrong.
bool HasTranslatorTable(const std::string& text);

// The network without dictionaries, but with the text. All errors are kBadInput with `path`, line
// and column.
Result<TranslatorSpec> ParseTranslator(std::string text, const std::string& path);

}  // namespace thimble
