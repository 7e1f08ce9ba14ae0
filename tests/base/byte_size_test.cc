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
  EXPECT_EQ(RoundUp(48, 48), 48U);
  EXPECT_EQ(RoundUp(49, 48), 96U);
}

TEST(ByteSize, ParsesUnits) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"17", 17},
      {"17B", 17},
      {"17b", 17},
      {"512k", 512000},
      {"1K", 1000},
      {"1kb", 1000},
      {"8MB", 8000000},
      {"8M", 8000000},
      {"8m", 8000000},
      {"5mb", 5000000},
      {"8 MB", 8000000},
      {"2G", 2000000000},
      {"1TB", 1000000000000},
      {"4KiB", 4096},
      {"4kib", 4096},
      {"1Mi", 1 << 20},
      {"1.5GiB", 3LL << 29},
      {"2tib", 2LL << 40},
      {"1.5MB", 1500000},
      {"0MB", 0},
      {"0.0k", 0},
      {"8192TiB", 1LL << 53},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, RoundsFractionsDownExactly) {
  const std::pair<const char*, int64_t> cases[] = {
      {"1.1GiB", 1181116006},  // of 1181116006.4
      {"12.6MiB", 13212057},   // of 13212057.6
      {"1.005MB", 1005000},    // 1004999.99… as a double
      {"4.35kB", 4350},        // 4349.99… as a double
      {"0.001k", 1},           //
      {"0.9999999999999999999999TB", 999999999999},
      {"00001.50k", 1500},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, RejectsWhatIsNoSize) {
  for (const char* text :
       {"",        "MB",  "-1",  "-1MB",  "8 megabytes", "1.5", "0.5B", "8MB ",  "8  MB", "8 ",
        "nan",     "inf", "1e3", "1e300", "0x10",        " 8",  ".5GB", "5.GB",  "1,5GB", "1.2.3k",
        "0.0005k", "8i",  "8iB", "8kBB",  "8Bk",         "8PB", "+8",   "8\tMB", "8MB8",  "８MB"}) {
    const auto parsed = ParseByteSize(text);
    ASSERT_FALSE(parsed.ok()) << "'" << text << "' gave " << *parsed;
    EXPECT_NE(parsed.error().message.find(text), std::string::npos);
    EXPECT_NE(parsed.error().message.find("512k, 8MB or 1.5GiB"), std::string::npos);
    EXPECT_EQ(parsed.error().kind, ErrorKind::kBadInput);
  }
}

TEST(ByteSize, RejectsWhatNoMachineHas) {
  for (const char* text : {"9007199254740993", "8193TiB", "9223372036854775807", "10000000GiB",
                           "99999999999999999999999999999999999999999999", "8192.1TiB"}) {
    const auto parsed = ParseByteSize(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().message,
              fmt::format("'{}' is too large; expected at most 8192TiB", text));
  }
}

TEST(ByteSize, FormatsInDecimalUnits) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(999), "999 B");
  EXPECT_EQ(FormatBytes(12300), "12.30 kB");
  EXPECT_EQ(FormatBytes(398120000), "398.12 MB");
  EXPECT_EQ(FormatBytes(2309600000), "2.310 GB");
  EXPECT_EQ(FormatBytes(-12300), "-12.30 kB");
  EXPECT_EQ(FormatBytes(999'994), "999.99 kB");
  EXPECT_EQ(FormatBytes(999'996), "1.00 MB");
  EXPECT_EQ(FormatBytes(35'186'815'000'000), "35.187 TB");
  EXPECT_EQ(FormatBytes(2'000'000'000'000'000), "2.000 PB");
  EXPECT_EQ(FormatBytes(kMax), "9.223 EB");
  EXPECT_EQ(FormatBytes(kMin), "-9.223 EB");
}

}  // namespace
}  // namespace thimble
