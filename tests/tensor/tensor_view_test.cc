#include "thimble/tensor/tensor_view.h"

#include <gtest/gtest.h>

#include <array>

namespace thimble {
namespace {

TEST(TensorView, GivesItsElements) {
  std::array<float, 6> numbers = {1, 2, 3, 4, 5, 6};
  const TensorView view{numbers.data(), DType::kF32, Shape{2, 3}};
  EXPECT_EQ(view.As<float>().size(), 6U);
  EXPECT_EQ(view.As<const float>()[5], 6);
  EXPECT_EQ(view.DataAs<float>(), numbers.data());
  EXPECT_EQ(view.size_bytes(), sizeof(numbers));
}

// In all builds: elements of another size would be read outside the tensor.
TEST(TensorViewDeathTest, RefusesAnotherType) {
  std::array<uint8_t, 4> bytes = {};
  const TensorView view{bytes.data(), DType::kU8, Shape{4}};
  EXPECT_DEATH(view.As<float>(), "a tensor of u8 was accessed as one of f32");
  EXPECT_DEATH(view.DataAs<const int32_t>(), "a tensor of u8 was accessed as one of i32");
}

// Types of the same size are still different types.
TEST(TensorViewDeathTest, RefusesAnotherTypeOfTheSameSize) {
  std::array<float, 4> numbers = {};
  const TensorView view{numbers.data(), DType::kF32, Shape{4}};
  EXPECT_DEATH(view.As<int32_t>(), "a tensor of f32 was accessed as one of i32");
}

}  // namespace
}  // namespace thimble
