#include "thimble/report/categories_json.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(CategoriesJson, HasEachCategoryInOrder) {
  CategoryBytes bytes{};
  for (size_t index = 0; index < kNumCategories; ++index) bytes[index] = 10 * index;
  const Json json = CategoriesJson(bytes);
  ASSERT_EQ(json.size(), kNumCategories);
  for (size_t index = 0; index < kNumCategories; ++index) {
    EXPECT_EQ(json.members()[index].name, Name(static_cast<Category>(index)));
    EXPECT_EQ(json.members()[index].value, 10 * index);
  }
}

}  // namespace
}  // namespace thimble
