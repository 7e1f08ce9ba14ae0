#include "thimble/base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

TEST(IsUtf8, TakesTextOfAllLengths) {
  for (const char* text : {"", "plain", "größe", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000",
                           "\uffff", "\U00010000", "\U0010ffff", "日本語 🧵"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  EXPECT_TRUE(IsUtf8(std::string("\0\n\x7f", 3)));
}

TEST(IsUtf8, RefusesWhatIsNone) {
  for (const char* text :
       {"\x80",  // continues nothing
        "\xff", "\xfe", "\xf5\x80\x80\x80",
        "\xc3",  // ends too soon
        "\xe2\x82", "\xf0\x9f\xa7",
        "\xc3(",  // wrong continuation
        "\xe2\x82(", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf",  // overlong
        "\xed\xa0\x80", "\xed\xbf\xbf",                                           // surrogates
        "\xf4\x90\x80\x80"}) {                                                    // too large
    EXPECT_FALSE(IsUtf8(text)) << text;
    EXPECT_FALSE(IsUtf8(std::string("ok ") + text + " ok")) << text;
  }
}

}  // namespace
}  // namespace thimble
