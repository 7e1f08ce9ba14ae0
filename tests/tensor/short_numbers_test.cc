#include "thimble/tensor/short_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace thimble {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a half by its definition.
double Value(F16 half) {
  const int exponent = half.bits >> 10 & 31;
  const int mantissa = half.bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool IsNan(F16 half) { return (half.bits & 0x7FFF) > 0x7C00; }

TEST(F16, EveryOneHasItsValue) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const F16 half{static_cast<uint16_t>(bits)};
    const float number = ToFloat(half);
    if (IsNan(half)) {
      EXPECT_TRUE(std::isnan(number)) << bits;
      EXPECT_TRUE(IsNan(ToF16(number))) << bits;
      continue;
    }
    const bool infinite = (bits & 0x7FFF) == 0x7C00;
    EXPECT_EQ(std::abs(number), infinite ? kInfinity : std::abs(Value(half))) << bits;
    EXPECT_EQ(std::signbit(number), bits >= 0x8000) << bits;
    EXPECT_EQ(ToF16(number).bits, bits);
  }
}

// Between two neighbours: below the middle the lower one, above it the upper, in it the even one.
TEST(F16, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7BFF; ++bits) {
    const F16 lower{static_cast<uint16_t>(bits)};
    const F16 upper{static_cast<uint16_t>(bits + 1)};
    const auto middle = static_cast<float>((Value(lower) + Value(upper)) / 2);
    EXPECT_EQ(ToF16(std::nextafter(middle, 0.0F)).bits, lower.bits);
    EXPECT_EQ(ToF16(middle).bits, bits % 2 == 0 ? lower.bits : upper.bits);
    EXPECT_EQ(ToF16(std::nextafter(middle, kInfinity)).bits, upper.bits);
    EXPECT_EQ(ToF16(-middle).bits, ToF16(middle).bits | 0x8000);
  }
}

TEST(F16, OverflowsFrom65520) {
  EXPECT_EQ(ToF16(65519.996F).bits, 0x7BFF);
  EXPECT_EQ(ToF16(65520).bits, 0x7C00);
  EXPECT_EQ(ToF16(-1e30F).bits, 0xFC00);
  EXPECT_EQ(ToFloat(ToF16(kInfinity)), kInfinity);
  EXPECT_EQ(ToF16(0x1p-25F).bits, 0);  // the middle between 0 and the smallest
  EXPECT_EQ(ToF16(0x1.8p-25F).bits, 1);
}

TEST(BF16, EveryOneIsTheUpperHalfOfAFloat) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const BF16 half{static_cast<uint16_t>(bits)};
    const float number = ToFloat(half);
    EXPECT_EQ(std::bit_cast<uint32_t>(number), bits << 16);
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(ToFloat(ToBF16(number)))) << bits;
    } else {
      EXPECT_EQ(ToBF16(number).bits, bits);
    }
  }
}

TEST(BF16, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7F7F; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000;
    EXPECT_EQ(ToBF16(std::bit_cast<float>(middle - 1)).bits, bits);
    EXPECT_EQ(ToBF16(std::bit_cast<float>(middle)).bits, bits + bits % 2);
    EXPECT_EQ(ToBF16(std::bit_cast<float>(middle + 1)).bits, bits + 1);
  }
  EXPECT_EQ(ToBF16(std::numeric_limits<float>::max()).bits, 0x7F80);
  // A NaN whose upper half alone would be infinity.
  EXPECT_TRUE(std::isnan(ToFloat(ToBF16(std::bit_cast<float>(0x7F800001U)))));
}

// Over all random bits, the mean of the results is the number.
template <class Round>
double MeanOf(const Round& round, float number) {
  double sum = 0;
  for (uint32_t random = 0; random <= 0xFFFF; ++random) {
    sum += static_cast<double>(round(number, random));
  }
  return sum / 0x10000;
}

TEST(RoundToF16AtRandom, GivesOneOfTheNeighboursAndTheNumberOnAverage) {
  for (const float number : {1.0003F, -1.0003F, 3.14159F, 65503.9F, 1e-6F, -3.3e-5F, 6.1e-5F, 2e-8F,
                             0x1p-14F, 0x1.fffffep-15F, 0.0F, 1.0F}) {
    const double spacing = std::max(std::abs(number) * 0x1p-10, 0x1p-24);
    for (const uint32_t random : {0U, 1U, 0x1FFFU, 0xABCDU, 0xFFFFU}) {
      const float rounded = RoundToF16AtRandom(number, random);
      EXPECT_EQ(ToFloat(ToF16(rounded)), rounded) << number << " " << random;
      EXPECT_LE(std::abs(rounded - number), spacing) << number << " " << random;
      if (ToFloat(ToF16(number)) == number) {
        EXPECT_EQ(rounded, number) << random;
      }
    }
    EXPECT_NEAR(MeanOf(RoundToF16AtRandom, number), number, spacing * 0x1p-12) << number;
  }
}

TEST(RoundToBF16AtRandom, GivesOneOfTheNeighboursAndTheNumberOnAverage) {
  for (const float number : {1.003F, -1.003F, 3.14159F, 1e-30F, -1e30F, 0.0F, 1.0F}) {
    const double spacing = std::abs(static_cast<double>(number)) * 0x1p-7;
    for (const uint32_t random : {0U, 1U, 0x1FFFU, 0xABCDU, 0xFFFFU}) {
      const float rounded = RoundToBF16AtRandom(number, random);
      EXPECT_EQ(ToFloat(ToBF16(rounded)), rounded) << number << " " << random;
      EXPECT_LE(std::abs(rounded - number), spacing) << number << " " << random;
    }
    EXPECT_NEAR(MeanOf(RoundToBF16AtRandom, number), number, spacing * 0x1p-12) << number;
  }
}

TEST(RoundAtRandom, LeavesNumbersThatCannotBeStored) {
  for (const float number : {kInfinity, -kInfinity, 65519.0F, 1e6F}) {
    EXPECT_EQ(RoundToF16AtRandom(number, 0xFFFF), number);
  }
  EXPECT_EQ(RoundToBF16AtRandom(kInfinity, 0xFFFF), kInfinity);
  EXPECT_TRUE(std::isnan(RoundToF16AtRandom(NAN, 0xFFFF)));
  EXPECT_TRUE(std::isnan(RoundToBF16AtRandom(NAN, 0xFFFF)));
}

}  // namespace
}  // namespace thimble
