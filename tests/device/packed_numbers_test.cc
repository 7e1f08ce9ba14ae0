#include "thimble/device/cpu/packed_numbers.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/packed_pool.h"
#include "thimble/device/cpu/simd_target.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

class PackedNumbersTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(PinSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(PinSimdTarget("auto").ok()); }
};

// 1, 2, …: exact in all types as long as there are at most 256.
std::vector<float> CountUp(size_t elements) {
  std::vector<float> numbers(elements);
  for (size_t i = 0; i < elements; ++i) numbers[i] = static_cast<float>(1 + i % 256);
  return numbers;
}

// The second of three tensors, so that it begins and ends within a pool.
constexpr int64_t kPackedElements = 777;
constexpr size_t kPackedTensor = 1;

TEST_P(PackedNumbersTest, ReadsEveryRange) {
  const std::vector<float> dense = CountUp(kPackedElements);
  for (const double density : {0.0, 0.05, 0.5, 1.0}) {
    const TestPattern pattern({5, kPackedElements, 300}, density, /*seed=*/3);
    const std::vector<float> expected = pattern.Masked(kPackedTensor, dense);
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      TestPool pool(pattern, type);
      pool.Store(kPackedTensor, Shape{kPackedElements}, dense);
      const Elements elements = ElementsOf(pool.View(kPackedTensor, Shape{kPackedElements}));
      for (size_t first = 0; first < dense.size(); first += 13) {
        for (const size_t count : {size_t{1}, size_t{15}, size_t{32}, size_t{100}, size_t{700}}) {
          if (first + count > dense.size()) continue;
          std::vector<float> read(count + 1, -1.0F);
          DecodeElements(elements, first, count, read.data());
          for (size_t i = 0; i < count; ++i) ASSERT_EQ(read[i], expected[first + i]);
          ASSERT_EQ(read[count], -1.0F) << "wrote behind the range";
        }
      }
    }
  }
}

TEST_P(PackedNumbersTest, ReadsRowsOfPackedAndDenseTensors) {
  std::vector<float> dense = CountUp(kPackedElements);
  const TestPattern pattern({300, kPackedElements}, 0.3, /*seed=*/4);
  TestPool pool(pattern, DType::kF32);
  pool.Store(kPackedTensor, Shape{kPackedElements}, dense);
  std::vector<float> masked = pattern.Masked(kPackedTensor, dense);
  const NumberRows rows{.rows = 5, .count = 40, .from_stride = 150, .to_stride = 50};
  std::vector<float> from_packed(5 * 50, -1.0F);
  std::vector<float> from_dense(5 * 50, -1.0F);
  DecodeElementRows(ElementsOf(pool.View(kPackedTensor, Shape{kPackedElements})), 9, rows,
                    from_packed.data());
  DecodeElementRows(ElementsOf({masked.data(), DType::kF32, Shape{kPackedElements}}), 9, rows,
                    from_dense.data());
  EXPECT_EQ(from_packed, from_dense);
}

TEST_P(PackedNumbersTest, ReadsNothing) {
  const TestPattern pattern({256}, 1.0, /*seed=*/1);
  TestPool pool(pattern, DType::kF32);
  float untouched = 7;
  DecodeElements(ElementsOf(pool.View(0, Shape{256})), 256, 0, &untouched);
  EXPECT_EQ(untouched, 7);
}

TEST_P(PackedNumbersTest, GathersWhatIsActiveAlsoInPlace) {
  const std::vector<float> dense = CountUp(kPackedElements);
  for (const double density : {0.0, 0.2, 1.0}) {
    const TestPattern pattern({5, kPackedElements}, density, /*seed=*/5);
    for (const size_t first : {size_t{0}, size_t{31}, size_t{300}}) {
      const size_t count = dense.size() - first;
      std::vector<float> range(dense.begin() + static_cast<ptrdiff_t>(first), dense.end());
      std::vector<float> expected;
      for (size_t i = 0; i < count; ++i) {
        if (pattern.Place(kPackedTensor).IsActive(first + i)) expected.push_back(range[i]);
      }
      std::vector<float> gathered(count, -1.0F);
      for (float* to : {gathered.data(), range.data()}) {
        const size_t active =
            GatherActive(pattern.Place(kPackedTensor), first, count, range.data(), to);
        EXPECT_EQ(std::vector<float>(to, to + active), expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, PackedNumbersTest, testing::ValuesIn(SupportedSimdTargets()),
                         [](const auto& target) { return target.param; });

}  // namespace
}  // namespace thimble
