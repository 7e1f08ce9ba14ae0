// TOML files with places: what parsers of model files share.
#pragma once

#include <string>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/base/toml_parser.h"
#include "thimble/model/file/model_description.h"

namespace thimble {

SourcePlace PlaceOf(const toml::source_region& region);

struct Entry {
  std::string key;
  SourcePlace place;
  const toml::node* node;
};

// In file order, so that the first error in the file is the one reported. The table must outlive
// them.
std::vector<Entry> InOrder(const toml::table& table);

// kBadInput with `path`, line and column if the text is not TOML.
Result<toml::table> ParseToml(const std::string& text, const std::string& path);

}  // namespace thimble
