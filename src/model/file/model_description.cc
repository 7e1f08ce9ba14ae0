#include "thimble/model/file/model_description.h"

#include <fmt/format.h>

namespace thimble {

std::string ToString(const std::string& path, SourcePlace place) {
  return fmt::format("{}:{}:{}", path, place.line, place.column);
}

Error ErrorAt(const std::string& path, SourcePlace place, const std::string& what) {
  return WithContext(ToString(path, place), BadInput(what));
}

const BlockDescription* ModelDescription::FindBlock(const std::string& name) const {
  for (const BlockDescription& block : blocks) {
    if (block.name == name) return &block;
  }
  return nullptr;
}

}  // namespace thimble
