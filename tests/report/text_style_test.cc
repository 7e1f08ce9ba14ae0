#include "thimble/report/text_style.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(TextStyle, PaintsOnlyInColour) {
  const TextStyle plain;
  const TextStyle colored{0, true};
  EXPECT_EQ(plain.Paint(Ink::kBad, "no"), "no");
  EXPECT_EQ(colored.Paint(Ink::kBad, "no"), "\x1b[1;31mno\x1b[0m");
  EXPECT_EQ(colored.Paint(Ink::kPlain, "no"), "no");
  EXPECT_EQ(colored.Paint(Ink::kBold, ""), "");
}

TEST(TextStyle, WidthIsInCodePoints) {
  EXPECT_EQ(DisplayWidth(""), 0U);
  EXPECT_EQ(DisplayWidth("abc"), 3U);
  EXPECT_EQ(DisplayWidth("a…c"), 3U);
  EXPECT_EQ(DisplayWidth("größer"), 6U);
}

TEST(Shortened, KeepsWhatFits) {
  EXPECT_EQ(Shortened("abc", 3), "abc");
  EXPECT_EQ(Shortened("größer", 6), "größer");
  EXPECT_EQ(Shortened("", 1), "");
}

TEST(Shortened, LeavesTheMiddleOut) {
  EXPECT_EQ(Shortened("block1.layer.0.conv1", 11), "block…conv1");
  EXPECT_EQ(Shortened("abcdef", 4), "a…ef");
  EXPECT_EQ(Shortened("abcdef", 1), "…");
  EXPECT_EQ(Shortened("ääääää", 4), "ä…ää");
}

TEST(Shortened, NeverExceedsItsWidth) {
  const std::string text = "größer als alles andere…";
  for (size_t width = 1; width < 30; ++width) {
    EXPECT_LE(DisplayWidth(Shortened(text, width)), width);
  }
}

}  // namespace
}  // namespace thimble
