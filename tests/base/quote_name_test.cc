#include "thimble/base/quote_name.h"

#include <gtest/gtest.h>

#include <string>

#include "thimble/base/utf8.h"

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

TEST(OneLine, LosesItsMiddleWhereItIsTooLong) {
  const std::string whole = "begin" + std::string(1492, 'x') + "end";
  EXPECT_EQ(OneLine(whole), whole);
  const std::string line = OneLine("begin" + std::string(100'000, '\n') + "end");
  EXPECT_EQ(line.size(), 1505U);
  EXPECT_TRUE(line.starts_with("begin\\x0a")) << line;
  EXPECT_TRUE(line.ends_with("\\x0aend")) << line;
}

TEST(OneLine, LosesWholeCharacters) {
  for (const size_t shift : {0U, 1U, 2U}) {
    std::string text(shift, 'x');
    while (text.size() < 2000) text += "\u20ac";  // three bytes
    const std::string line = OneLine(text + "y");
    EXPECT_TRUE(IsUtf8(line)) << shift;
    EXPECT_GE(line.size(), 1500U) << shift;
  }
}

}  // namespace
}  // namespace thimble
