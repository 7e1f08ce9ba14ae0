#include "thimble/device/cpu/numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "thimble/device/cpu/simd_target.h"
#include "thimble/device/cpu/thread_pool.h"
#include "thimble/tensor/short_numbers.h"

namespace thimble {
namespace {

class NumbersTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { ASSERT_TRUE(PinSimdTarget(GetParam()).ok()); }
  void TearDown() override { ASSERT_TRUE(PinSimdTarget("auto").ok()); }
};

template <class T>
TensorView ViewOf(std::vector<T>& elements) {
  return {elements.data(), DTypeOf<T>(), {static_cast<int64_t>(elements.size())}};
}

template <class T>
Numbers From(std::vector<T>& elements, size_t first = 0) {
  return {elements.data() + first, DTypeOf<T>()};
}

template <class T>
ConstNumbers ConstFrom(const std::vector<T>& elements, size_t first = 0) {
  return {elements.data() + first, DTypeOf<T>()};
}

// Equal, or both NaN: which NaN is left to the hardware.
bool Same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

template <class Short>
void ExpectDecodesAll() {
  std::vector<Short> stored(1 << 16);
  for (size_t i = 0; i < stored.size(); ++i) stored[i].bits = static_cast<uint16_t>(i);
  std::vector<float> decoded(stored.size());
  DecodeNumbers(ConstFrom(stored), stored.size(), decoded.data());
  for (size_t i = 0; i < stored.size(); ++i) {
    ASSERT_TRUE(Same(decoded[i], ToFloat(stored[i]))) << i << ": " << decoded[i];
  }
}

TEST_P(NumbersTest, DecodesEveryShortNumber) {
  ExpectDecodesAll<F16>();
  ExpectDecodesAll<BF16>();
}

// Floats from all of their range, and the neighbours of every border between two halves.
std::vector<float> ManyFloats() {
  std::vector<float> floats;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4099) {
    floats.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    const float below = ToFloat(F16{static_cast<uint16_t>(half)});
    const float above = half + 1 < 0x7C00 ? ToFloat(F16{static_cast<uint16_t>(half + 1)}) : 65536;
    const float middle = (below + above) / 2;
    for (const float number :
         {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, above)}) {
      floats.push_back(number);
      floats.push_back(-number);
    }
  }
  return floats;
}

TEST_P(NumbersTest, EncodesAsTheScalarCodeDoes) {
  const std::vector<float> floats = ManyFloats();
  std::vector<F16> halves(floats.size());
  std::vector<BF16> upper(floats.size());
  EncodeNumbers(floats.data(), floats.size(), From(halves));
  EncodeNumbers(floats.data(), floats.size(), From(upper));
  for (size_t i = 0; i < floats.size(); ++i) {
    ASSERT_TRUE(Same(ToFloat(halves[i]), ToFloat(ToF16(floats[i])))) << floats[i];
    ASSERT_TRUE(Same(ToFloat(upper[i]), ToFloat(ToBF16(floats[i])))) << floats[i];
  }
}

TEST_P(NumbersTest, TouchesOnlyWhatItWasAskedFor) {
  for (const size_t count : {0, 1, 3, 15, 16, 17, 40}) {
    std::vector<F16> stored(64, F16{0x3C00});  // ones
    const std::vector<float> twos(count, 2.0F);
    EncodeNumbers(twos.data(), count, From(stored, 5));
    std::vector<float> read(64, -1);
    DecodeNumbers(ConstFrom(stored, 3), count + 4, read.data());
    for (size_t i = 0; i < read.size(); ++i) {
      const bool two = i >= 2 && i < 2 + count;
      EXPECT_EQ(read[i], two ? 2.0F : i < count + 4 ? 1.0F : -1.0F) << count << " " << i;
    }
  }
}

// Rows with gaps between them, which stay as they are.
TEST_P(NumbersTest, ConvertsRows) {
  std::vector<BF16> stored(4 * 40, ToBF16(7.0F));
  std::vector<float> tile(3 * 20);
  std::iota(tile.begin(), tile.end(), 0.0F);
  EncodeNumberRows(tile.data(), {3, 18, 20, 40}, From(stored, 2));
  for (size_t i = 0; i < stored.size(); ++i) {
    const size_t row = (i - 2) / 40;
    const size_t column = (i - 2) % 40;
    const bool written = i >= 2 && row < 3 && column < 18;
    EXPECT_EQ(ToFloat(stored[i]), written ? static_cast<float>(20 * row + column) : 7.0F) << i;
  }
  std::vector<float> back(3 * 18);
  DecodeNumberRows(ConstFrom(stored, 2), {3, 18, 40, 18}, back.data());
  for (size_t i = 0; i < back.size(); ++i) {
    EXPECT_EQ(back[i], static_cast<float>(20 * (i / 18) + i % 18)) << i;
  }
}

TEST_P(NumbersTest, FillsRows) {
  std::vector<BF16> stored(3 * 100, ToBF16(7.0F));
  FillNumberRows(2, {.rows = 2, .count = 80, .from_stride = 0, .to_stride = 100}, From(stored, 3));
  for (size_t i = 0; i < stored.size(); ++i) {
    const bool written = i >= 3 && i < 200 && (i - 3) % 100 < 80;
    EXPECT_EQ(ToFloat(stored[i]), written ? 2.0F : 7.0F) << i;
  }
}

TEST_P(NumbersTest, AddsRows) {
  const std::vector<BF16> stored(3 * 40, ToBF16(7.0F));
  std::vector<float> sums(3 * 20);
  std::iota(sums.begin(), sums.end(), 0.0F);
  AddNumberRows(ConstFrom(stored, 2), {2, 18, 40, 20}, sums.data());
  for (size_t i = 0; i < sums.size(); ++i) {
    const bool added = i / 20 < 2 && i % 20 < 18;
    EXPECT_EQ(sums[i], static_cast<float>(i) + (added ? 7.0F : 0.0F)) << i;
  }
}

// 2 (a + b), in place of b, for tensors of several types and more than one chunk.
TEST_P(NumbersTest, PiecesCoverEveryElementOnce) {
  constexpr size_t kCount = 40'000;
  ThreadPool pool(2);
  std::vector<float> a(kCount);
  std::iota(a.begin(), a.end(), 0.0F);
  std::vector<BF16> b(kCount, ToBF16(0.5F));
  std::vector<F16> rest(kCount);
  const std::vector<TensorView> in = {ViewOf(a), ViewOf(b)};
  const std::vector<TensorView> out = {ViewOf(b), ViewOf(rest)};
  ParallelNumbers(pool, in, out, [](const NumberPiece& piece) {
    for (size_t i = 0; i < piece.count; ++i) {
      const float sum = piece.in[0][i] + piece.in[1][i];
      piece.out[1][i] = static_cast<float>((piece.begin + i) % 100);
      piece.out[0][i] = 2 * sum;
    }
  });
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(b[i].bits, ToBF16(2 * static_cast<float>(i) + 1).bits) << i;
    ASSERT_EQ(ToFloat(rest[i]), static_cast<float>(i % 100)) << i;
  }
}

std::vector<uint32_t> SomeWords(size_t count) {
  std::vector<uint32_t> words(count);
  for (size_t i = 0; i < count; ++i) words[i] = static_cast<uint32_t>(i * 2654435761U + 12345);
  return words;
}

TEST_P(NumbersTest, RoundsAtRandomAsTheScalarCodeDoes) {
  const std::vector<float> floats = ManyFloats();
  const std::vector<uint32_t> words = SomeWords(floats.size());
  std::vector<F16> halves(floats.size());
  std::vector<BF16> short_floats(floats.size());
  EncodeNumbersAtRandom(floats.data(), floats.size(), words.data(), 16, From(halves));
  EncodeNumbersAtRandom(floats.data(), floats.size(), words.data(), 0, From(short_floats));
  for (size_t i = 0; i < floats.size(); ++i) {
    const float half = ToFloat(ToF16(RoundToF16AtRandom(floats[i], words[i] >> 16)));
    ASSERT_TRUE(Same(ToFloat(halves[i]), half)) << i << ": " << floats[i];
    const float short_float = ToFloat(ToBF16(RoundToBF16AtRandom(floats[i], words[i])));
    ASSERT_TRUE(Same(ToFloat(short_floats[i]), short_float)) << i << ": " << floats[i];
  }
}

// Blocks of 8-bit numbers.
class Q8 {
 public:
  explicit Q8(size_t count)
      : count_(count), bytes_(StorageBytes(DType::kQ8, count) + kGuard, std::byte{0xAB}) {}
  Numbers numbers() { return {bytes_.data(), DType::kQ8}; }
  std::vector<float> Decoded() const {
    std::vector<float> decoded(count_);
    DecodeNumbers({bytes_.data(), DType::kQ8}, count_, decoded.data());
    return decoded;
  }
  bool guard_is_whole() const {
    return std::all_of(bytes_.end() - kGuard, bytes_.end(),
                       [](std::byte b) { return b == std::byte{0xAB}; });
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  static constexpr std::ptrdiff_t kGuard = 8;
  size_t count_;
  std::vector<std::byte> bytes_;
};

std::vector<float> Waves(size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = std::sin(static_cast<float>(i)) * std::exp(static_cast<float>(i / 256) - 3);
  }
  return numbers;
}

// Of a block: the distance between two integers.
float ScaleAt(const std::vector<float>& numbers, size_t i) {
  const size_t begin = i / kQ8BlockNumbers * kQ8BlockNumbers;
  const size_t end = std::min(numbers.size(), begin + kQ8BlockNumbers);
  float largest = 0;
  for (size_t k = begin; k < end; ++k) largest = std::max(largest, std::abs(numbers[k]));
  return largest / 127;
}

TEST_P(NumbersTest, EightBitsAreWithinHalfAStepOfTheBlock) {
  for (const size_t count : {1U, 3U, 255U, 256U, 257U, 1000U}) {
    const std::vector<float> numbers = Waves(count);
    Q8 stored(count);
    EncodeNumbers(numbers.data(), count, stored.numbers());
    EXPECT_TRUE(stored.guard_is_whole()) << count;
    const std::vector<float> decoded = stored.Decoded();
    for (size_t i = 0; i < count; ++i) {
      ASSERT_LE(std::abs(decoded[i] - numbers[i]), 0.5001F * ScaleAt(numbers, i)) << i;
    }
  }
}

TEST_P(NumbersTest, EightBitsAtRandomAreRightOnAverage) {
  constexpr size_t kCount = 300;
  constexpr size_t kDraws = 2000;
  const std::vector<float> numbers = Waves(kCount);
  std::vector<double> sums(kCount, 0.0);
  const std::vector<uint32_t> words = SomeWords(kCount * kDraws);
  for (size_t draw = 0; draw < kDraws; ++draw) {
    Q8 stored(kCount);
    EncodeNumbersAtRandom(numbers.data(), kCount, words.data() + kCount * draw, 16,
                          stored.numbers());
    const std::vector<float> decoded = stored.Decoded();
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_LE(std::abs(decoded[i] - numbers[i]), 1.0001F * ScaleAt(numbers, i)) << i;
      sums[i] += decoded[i];
    }
  }
  // One step has a standard deviation of at most half of one.
  const double allowed = 5 * 0.5 / std::sqrt(kDraws);
  for (size_t i = 0; i < kCount; ++i) {
    EXPECT_NEAR(sums[i] / kDraws, numbers[i], allowed * ScaleAt(numbers, i)) << i;
  }
}

TEST_P(NumbersTest, ABlockOfZerosAndOneThatIsNotFinite) {
  const std::vector<float> zeros(300, 0.0F);
  Q8 stored(zeros.size());
  EncodeNumbers(zeros.data(), zeros.size(), stored.numbers());
  EXPECT_EQ(stored.Decoded(), zeros);
  for (const float bad : {NAN, INFINITY}) {
    std::vector<float> numbers(300, 1.0F);
    numbers[7] = bad;
    EncodeNumbers(numbers.data(), numbers.size(), stored.numbers());
    EXPECT_FALSE(std::isfinite(stored.Decoded()[0]));
    EXPECT_EQ(stored.Decoded()[299], 1.0F) << "the next block";
  }
}

// Any number of threads, and in place.
TEST_P(NumbersTest, PiecesAreRoundedWithTheDrawsOfTheirElements) {
  constexpr size_t kCount = 40001;
  const std::vector<float> numbers = Waves(kCount);
  const RoundingDraw draw{.tensor = 3, .update = 17, .occasion = 1};
  std::vector<F16> expected(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const uint32_t word = draw.Words(static_cast<uint32_t>(i / 4))[i % 4];
    expected[i] = ToF16(RoundToF16AtRandom(numbers[i], word >> RoundingDraw::ShiftOf(0)));
  }
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<float> in = numbers;
    std::vector<F16> out(kCount);
    const TensorView inputs[] = {ViewOf(in)};
    const TensorView outputs[] = {ViewOf(out)};
    ParallelNumbers(pool, inputs, outputs, {.draw = &draw}, [](const NumberPiece& piece) {
      std::copy_n(piece.in[0], piece.count, piece.out[0]);
    });
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(out[i].bits, expected[i].bits) << i;
  }
}

// Two outputs share each word; the third has words of the next occasion.
TEST_P(NumbersTest, EachOutputIsRoundedWithBitsOfItsOwn) {
  constexpr size_t kCount = 1501;
  const std::vector<float> numbers = Waves(kCount);
  const RoundingDraw draw{.tensor = 3, .update = 17};
  RoundingDraw next_draw = draw;
  next_draw.occasion = 1;
  ThreadPool pool(2);
  std::vector<float> in = numbers;
  std::vector<F16> out[3];
  for (std::vector<F16>& stored : out) stored.resize(kCount);
  const TensorView inputs[] = {ViewOf(in)};
  const TensorView outputs[] = {ViewOf(out[0]), ViewOf(out[1]), ViewOf(out[2])};
  ParallelNumbers(pool, inputs, outputs, {.draw = &draw}, [](const NumberPiece& piece) {
    for (size_t o = 0; o < 3; ++o) std::copy_n(piece.in[0], piece.count, piece.out[o]);
  });
  for (size_t i = 0; i < kCount; ++i) {
    const uint32_t word = draw.Words(static_cast<uint32_t>(i / 4))[i % 4];
    const uint32_t next_word = next_draw.Words(static_cast<uint32_t>(i / 4))[i % 4];
    const auto rounded = [&](uint32_t bits) {
      return ToF16(RoundToF16AtRandom(numbers[i], bits)).bits;
    };
    ASSERT_EQ(out[0][i].bits, rounded(word >> 16)) << i;
    ASSERT_EQ(out[1][i].bits, rounded(word)) << i;
    ASSERT_EQ(out[2][i].bits, rounded(next_word >> 16)) << i;
  }
}

TEST_P(NumbersTest, ShowsWhatTheFirstOutputStores) {
  constexpr size_t kCount = 3001;
  ThreadPool pool(2);
  std::vector<float> in = Waves(kCount);
  std::vector<F16> rounded(kCount);
  std::vector<float> lost(kCount);
  const TensorView inputs[] = {ViewOf(in)};
  const TensorView outputs[] = {ViewOf(rounded), ViewOf(lost)};
  const auto subtract = [](const NumberPiece& piece, const float* stored) {
    for (size_t i = 0; i < piece.count; ++i) piece.out[1][i] = piece.out[0][i] - stored[i];
  };
  const NumberRounding::Written written(subtract);
  ParallelNumbers(pool, inputs, outputs, {.first_written = &written}, [](const NumberPiece& piece) {
    std::copy_n(piece.in[0], piece.count, piece.out[0]);
  });
  for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(lost[i], in[i] - ToFloat(ToF16(in[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Targets, NumbersTest, testing::ValuesIn(SupportedSimdTargets()),
                         [](const auto& target) { return target.param; });

TEST(NumbersDeathTest, IntegersAreNotNumbers) {
  std::vector<int32_t> integers(4);
  float number = 0;
  EXPECT_DEATH(DecodeNumbers(ConstFrom(integers), 1, &number), "i32 does not store numbers");
  EXPECT_DEATH(EncodeNumbers(&number, 1, From(integers)), "i32 does not store numbers");
}

}  // namespace
}  // namespace thimble
