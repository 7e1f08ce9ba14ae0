#include "thimble/base/byte_size.h"

#include <gtest/gtest.h>

#include <limits>

namespace thimble {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(ByteSize, CheckedArithmeticNoticesOverflow) {
  EXPECT_EQ(CheckedMultiply(6, 7), 42);
  EXPECT_EQ(CheckedMultiply(kMax, 0), 0);
  EXPECT_EQ(CheckedMultiply(kMax / 2, 3), std::nullopt);
  EXPECT_EQ(CheckedMultiply(kMin, -1), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMax - 1, 1), kMax);
  EXPECT_EQ(CheckedAdd(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMin, -1), std::nullopt);
}

TEST(ByteSize, RoundsUp) {
  EXPECT_EQ(RoundUp(0, 64), 0U);
  EXPECT_EQ(RoundUp(1, 64), 64U);
  EXPECT_EQ(RoundUp(64, 64), 64U);
  EXPECT_EQ(RoundUp(65, 64), 128U);
}

TEST(ByteSize, ParsesUnits) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},           {"17", 17},       {"17B", 17},      {"512k", 512000},
      {"1K", 1000},       {"8MB", 8000000}, {"8M", 8000000},  {"8 MB", 8000000},
      {"2G", 2000000000}, {"4KiB", 4096},   {"1Mi", 1 << 20}, {"1.5GiB", 3LL << 29},
      {"1.5MB", 1500000}, {"1e3", 1000},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, RejectsWhatIsNoSize) {
  for (const char* text : {"", "MB", "-1", "-1MB", "8 megabytes", "8mb", "1.5", "0.5B", "8MB ",
                           "8  MB", "nan", "inf", "1e300", "0x10", "10000000GiB", " 8"}) {
    const auto parsed = ParseByteSize(text);
    ASSERT_FALSE(parsed.ok()) << "'" << text << "' gave " << *parsed;
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
    EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
  }
}

TEST(ByteSize, FormatsInDecimalUnits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(12300), "12.30 kB");
  EXPECT_EQ(FormatBytes(398120000), "398.12 MB");
  EXPECT_EQ(FormatBytes(2309600000), "2.310 GB");
  EXPECT_EQ(FormatBytes(-12300), "-12.30 kB");
}

}  // namespace
}  // namespace thimble
