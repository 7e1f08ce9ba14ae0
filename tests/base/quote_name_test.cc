#include "thimble/base/quote_name.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

TEST(QuoteName, IsShortAndOnOneLine) {
  EXPECT_EQ(QuoteName("conv.weight"), "\"conv.weight\"");
  EXPECT_EQ(QuoteName(""), "\"\"");
  EXPECT_EQ(QuoteName("a\nb\x1b"), "\"a\\nb\\u001b\"");
  EXPECT_LT(QuoteName(std::string(1'000'000, 'x')).size(), 100U);
  EXPECT_EQ(QuoteName("\xff"), "\"\\ufffd\"");
}

TEST(QuoteName, CutsWithinACharacter) {
  std::string name(79, 'x');
  name += "\xc3\xa4";  // its first byte is the 80th
  EXPECT_EQ(QuoteName(name), "\"" + std::string(79, 'x') + "\\ufffd\"...");
}

TEST(OneLine, WritesControlCharactersOut) {
  EXPECT_EQ(OneLine("a\nb\x1b[1m\x7f"), "a\\x0ab\\x1b[1m\\x7f");
  EXPECT_EQ(OneLine(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(OneLine("größe \\ \"x\""), "größe \\ \"x\"");
  EXPECT_EQ(OneLine(""), "");
}

}  // namespace
}  // namespace thimble
