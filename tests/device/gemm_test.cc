// Compares the packed matrix product with a plain loop in doubles: odd sizes, every SIMD target,
// and the same bits for any number of threads and any scratch.
#include "thimble/device/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "thimble/device/cpu/gemm/micro_kernel.h"
#include "thimble/device/cpu/simd_target.h"

namespace thimble {
namespace {

constexpr size_t kKiB = 1024;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Numbers in (-1, 1) that fill the mantissa.
std::vector<float> RandomFloats(size_t count, uint32_t seed) {
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    seed = seed * 1664525U + 1013904223U;
    number = static_cast<float>(static_cast<int32_t>(seed)) * 0x1p-31F;
  }
  return numbers;
}

// Both operands in both storage orders.
struct Operands {
  explicit Operands(const GemmShape& s)
      : shape(s),
        a(RandomFloats(s.rows * s.depth, 1)),
        b(RandomFloats(s.depth * s.columns, 2)),
        a_transposed(a.size()),
        b_transposed(b.size()) {
    for (size_t k = 0; k < s.depth; ++k) {
      for (size_t m = 0; m < s.rows; ++m) a_transposed[k * s.rows + m] = a[m * s.depth + k];
      for (size_t n = 0; n < s.columns; ++n) b_transposed[n * s.depth + k] = b[k * s.columns + n];
    }
  }
  GemmShape shape;
  std::vector<float> a, b, a_transposed, b_transposed;
};

enum class Storage { kPlain, kTransposed };

struct Room {
  int threads = 1;
  size_t scratch_bytes_per_thread = 1024 * kKiB;
};

// 64-byte aligned floats, initially NaN, followed by a guard.
class Buffer {
 public:
  explicit Buffer(size_t count) : count_(count), floats_(count + 2 * kGuard, kNan) {
    const size_t past = reinterpret_cast<uintptr_t>(floats_.data()) % 64 / sizeof(float);
    data_ = floats_.data() + (kGuard - past) % kGuard;
  }
  float* data() { return data_; }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(data_, count_)); }
  bool GuardIntact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (!std::isnan(data_[count_ + i])) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 16;
  size_t count_;
  std::vector<float> floats_;
  float* data_;
};

std::vector<float> Product(const Operands& in, Storage storage, const Room& room) {
  const GemmShape& shape = in.shape;
  const PlainPacker a(in.a.data(), shape.depth);
  const PlainPacker b(in.b.data(), shape.columns);
  const TransposedPacker a_transposed(in.a_transposed.data(), shape.rows);
  const TransposedPacker b_transposed(in.b_transposed.data(), shape.depth);
  const bool plain = storage == Storage::kPlain;
  const size_t bytes =
      GemmScratchBytes(shape, static_cast<size_t>(room.threads), room.scratch_bytes_per_thread);
  EXPECT_LE(bytes, static_cast<size_t>(room.threads) * room.scratch_bytes_per_thread);
  Buffer scratch(bytes / sizeof(float));
  Buffer c(shape.rows * shape.columns);
  ThreadPool pool(room.threads);
  Gemm({shape, plain ? Packer(a) : Packer(a_transposed), plain ? Packer(b) : Packer(b_transposed),
        c.data()},
       scratch.bytes(), pool);
  EXPECT_TRUE(scratch.GuardIntact());
  EXPECT_TRUE(c.GuardIntact());
  return {c.data(), c.data() + shape.rows * shape.columns};
}

void ExpectCloseToNaive(const Operands& in, const std::vector<float>& c) {
  const size_t rows = in.shape.rows;
  const size_t columns = in.shape.columns;
  const size_t depth = in.shape.depth;
  for (size_t m = 0; m < rows; ++m) {
    for (size_t n = 0; n < columns; ++n) {
      double sum = 0;
      double magnitude = 0;
      for (size_t k = 0; k < depth; ++k) {
        const double term = double{in.a[m * depth + k]} * in.b[k * columns + n];
        sum += term;
        magnitude += std::abs(term);
      }
      // Rounding errors of the chains partly cancel; a tenth of the worst case of one block of
      // depth is more than enough.
      const double tolerance = 0.1 * kPanelDepth * 0x1p-24 * magnitude + 1e-30;
      ASSERT_NEAR(c[m * columns + n], sum, tolerance) << "row " << m << ", column " << n;
    }
  }
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Around the edges of tiles, vectors, depth blocks; the last ones are split into parts of depth.
const GemmShape kShapes[] = {{1, 1, 1},      {1, 17, 5},     {7, 1, 300},    {14, 32, 256},
                             {15, 33, 257},  {13, 10, 27},   {29, 16, 511},  {300, 48, 130},
                             {5, 100, 1},    {31, 95, 1030}, {16, 27, 3001}, {128, 321, 640},
                             {40, 200, 2100}};

class GemmTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(PinSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(PinSimdTarget("auto").ok()); }
};

TEST_P(GemmTest, AgreesWithNaiveSums) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(testing::Message()
                 << shape.rows << " x " << shape.columns << " x " << shape.depth);
    const Operands in(shape);
    ExpectCloseToNaive(in, Product(in, Storage::kPlain, {}));
  }
}

TEST_P(GemmTest, SameBitsForAnyThreadsScratchAndStorage) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(testing::Message()
                 << shape.rows << " x " << shape.columns << " x " << shape.depth);
    const Operands in(shape);
    const std::vector<float> expected = Product(in, Storage::kPlain, {});
    for (const int threads : {1, 2, 3}) {
      for (const size_t scratch : {64 * kKiB, 100 * kKiB, 1024 * kKiB}) {
        for (const Storage storage : {Storage::kPlain, Storage::kTransposed}) {
          EXPECT_TRUE(SameBits(Product(in, storage, {threads, scratch}), expected))
              << threads << " threads, " << scratch << " bytes each";
        }
      }
    }
  }
}

// Product into numbers that are there already.
std::vector<float> SumWith(const Operands& in, std::vector<float> c, const Room& room) {
  const PlainPacker a(in.a.data(), in.shape.depth);
  const PlainPacker b(in.b.data(), in.shape.columns);
  Buffer scratch(
      GemmScratchBytes(in.shape, static_cast<size_t>(room.threads), room.scratch_bytes_per_thread) /
      sizeof(float));
  ThreadPool pool(room.threads);
  Gemm({.shape = in.shape, .a = a, .b = b, .c = c.data(), .adds = true}, scratch.bytes(), pool);
  return c;
}

TEST_P(GemmTest, AddsToWhatIsThere) {
  for (const GemmShape& shape : kShapes) {
    SCOPED_TRACE(testing::Message()
                 << shape.rows << " x " << shape.columns << " x " << shape.depth);
    const Operands in(shape);
    const std::vector<float> zeros(shape.rows * shape.columns, 0.0F);
    EXPECT_EQ(SumWith(in, zeros, {}), Product(in, Storage::kPlain, {}));
    std::vector<float> expected = RandomFloats(zeros.size(), 3);
    const std::vector<float> sums = SumWith(in, expected, {});
    for (const int threads : {1, 3}) {
      EXPECT_TRUE(SameBits(SumWith(in, expected, {threads, 64 * kKiB}), sums));
    }
    const std::vector<float> product = Product(in, Storage::kPlain, {});
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_NEAR(sums[i], expected[i] + product[i], 1e-6 * static_cast<double>(shape.depth)) << i;
    }
  }
  const std::vector<float> old = {1, 2};
  EXPECT_EQ(SumWith(Operands({1, 2, 0}), old, {}), old);
}

// Rows of a product have the same bits in a product with fewer rows.
TEST_P(GemmTest, OnePartDoesNotDependOnOtherRows) {
  const GemmShape whole{300, 40, 2100, false, true};
  const GemmShape first{17, 40, 2100, false, true};
  Operands in(whole);
  const std::vector<float> c = Product(in, Storage::kPlain, {});
  in.shape = first;
  const std::vector<float> rows = Product(in, Storage::kPlain, {});
  EXPECT_TRUE(SameBits(rows, {c.begin(), c.begin() + 17 * 40}));
  EXPECT_GT(CutDepth({17, 40, 2100}).parts.count, 1U);
  EXPECT_EQ(CutDepth(first).parts.count, 1U);
}

TEST_P(GemmTest, NothingToSumGivesZeros) {
  const Operands in({20, 9, 0});
  EXPECT_EQ(Product(in, Storage::kPlain, {}), std::vector<float>(180, 0.0F));
}

TEST_P(GemmTest, NothingToStoreIsFine) {
  EXPECT_TRUE(Product(Operands({0, 9, 5}), Storage::kPlain, {}).empty());
  EXPECT_TRUE(Product(Operands({9, 0, 5}), Storage::kPlain, {}).empty());
}

TEST_P(GemmTest, InfinityReachesItsOwnRowOnly) {
  Operands in({20, 18, 40});
  in.a[3 * 40 + 7] = std::numeric_limits<float>::infinity();
  const std::vector<float> c = Product(in, Storage::kPlain, {});
  for (size_t i = 0; i < c.size(); ++i) EXPECT_EQ(std::isfinite(c[i]), i / 18 != 3) << i;
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmTest, testing::ValuesIn(SupportedSimdTargets()),
                         [](const auto& target) { return target.param; });

TEST(TransposedPackerTest, WritesOnlyTheBlock) {
  constexpr size_t kRows = 9;
  constexpr size_t kColumns = 11;
  constexpr size_t kStride = 13;
  const std::vector<float> data = RandomFloats(kRows * kColumns, 3);  // (columns, rows)
  const TransposedPacker packer(data.data(), kRows);
  for (const MatrixBlock& block : {MatrixBlock{0, 9, 0, 11}, MatrixBlock{1, 3, 2, 9},
                                   MatrixBlock{2, 7, 5, 4}, MatrixBlock{8, 1, 10, 1}}) {
    std::vector<float> panel(kRows * kStride, -2.0F);
    packer(block, panel.data(), kStride);
    for (size_t i = 0; i < panel.size(); ++i) {
      const size_t row = i / kStride;
      const size_t column = i % kStride;
      const bool inside = row < block.rows && column < block.columns;
      const size_t source = (block.column + column) * kRows + block.row + row;
      EXPECT_EQ(panel[i], inside ? data[source] : -2.0F) << row << ", " << column;
    }
  }
}

TEST(BlockingTest, DepthBlocksCoverTheDepthInOrder) {
  for (const GemmShape& shape : kShapes) {
    const DepthCut cut = CutDepth(shape);
    size_t next = 0;
    for (size_t part = 0; part < cut.parts.count; ++part) {
      for (size_t block = 0; block < cut.NumBlocks(part); ++block) {
        const IndexRange range = cut.Block(part, block);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), kPanelDepth);
        EXPECT_GT(range.size(), 0U);
        next = range.end;
      }
    }
    EXPECT_EQ(next, shape.depth);
  }
}

TEST(BlockingTest, LongDepthOverSmallResultIsSplit) {
  EXPECT_EQ(CutDepth({32, 288, 102400}).parts.count, 8U);
  EXPECT_EQ(CutDepth({128, 1152, 6400}).parts.count, 2U);
  EXPECT_EQ(CutDepth({102400, 32, 288}).parts.count, 1U);
}

TEST(BlockingTest, ScratchStaysInsideTheLimitAndIsStable) {
  for (const GemmShape& shape :
       {GemmShape{102400, 32, 288}, GemmShape{6400, 128, 1152}, GemmShape{128, 1152, 6400},
        GemmShape{16, 27, 102400}, GemmShape{4000, 1024, 4096}, GemmShape{256, 9000, 100000}}) {
    for (const size_t threads : {1, 2, 16}) {
      for (const size_t per_thread : {64 * kKiB, 256 * kKiB, 1024 * kKiB, 16384 * kKiB}) {
        const size_t bytes = GemmScratchBytes(shape, threads, per_thread);
        EXPECT_LE(bytes, threads * per_thread);
        EXPECT_EQ(ChooseBlocks(shape, threads, bytes).ScratchBytes(threads), bytes);
      }
    }
  }
}

TEST(BlockingTest, MoreScratchNeverMeansLessUse) {
  const GemmShape shape{128, 1152, 6400};
  size_t before = 0;
  for (size_t kib = 64; kib <= 4096; kib += 64) {
    const size_t bytes = GemmScratchBytes(shape, 2, kib * kKiB);
    EXPECT_GE(bytes, before);
    before = bytes;
  }
}

}  // namespace
}  // namespace thimble
