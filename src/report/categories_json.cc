#include "thimble/report/categories_json.h"

namespace thimble {

Json CategoriesJson(const CategoryBytes& bytes) {
  Json json;
  for (size_t index = 0; index < kNumCategories; ++index) {
    json[std::string(Name(static_cast<Category>(index)))] = bytes[index];
  }
  return json;
}

}  // namespace thimble
