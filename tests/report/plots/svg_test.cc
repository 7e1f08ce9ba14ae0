#include "thimble/report/plots/svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(Escaped, LeavesPlainTextAlone) {
  EXPECT_EQ(Escaped("block1.layer.0.conv1 (3, 4) – größe\n\t"),
            "block1.layer.0.conv1 (3, 4) – größe\n\t");
  EXPECT_EQ(Escaped(""), "");
}

TEST(Escaped, NothingGetsOutOfTextOrAttribute) {
  EXPECT_EQ(Escaped("</title><script>alert('x')</script>\"&"),
            "&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&quot;&amp;");
}

TEST(Escaped, WhatXmlForbidsIsReplaced) {
  EXPECT_EQ(Escaped(std::string("a\0b\x1b\x08", 5)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Escaped("\xEF\xBF\xBE|\xEF\xBF\xBF|\xEF\xBF\xBD"),
            "\xEF\xBF\xBD|\xEF\xBF\xBD|\xEF\xBF\xBD");
  EXPECT_EQ(Escaped("\xEF\xBF"), "\xEF\xBF");  // incomplete: unchanged
}

TEST(Coordinate, AsShortAsItCanBe) {
  EXPECT_EQ(Coordinate(0), "0");
  EXPECT_EQ(Coordinate(12.5), "12.5");
  EXPECT_EQ(Coordinate(100), "100");
  EXPECT_EQ(Coordinate(-3.456), "-3.46");
  EXPECT_EQ(Coordinate(-0.001), "0");
  EXPECT_EQ(Coordinate(1e6), "1000000");
}

TEST(Coordinate, NumbersThatAreNoneDoNotBreakThePicture) {
  EXPECT_EQ(Coordinate(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(Coordinate(std::numeric_limits<double>::infinity()), "0");
}

TEST(TextWidth, CountsCharactersNotBytes) {
  EXPECT_EQ(TextWidth("ab", 10), 2 * TextWidth("a", 10));
  EXPECT_EQ(TextWidth("ä–", 10), TextWidth("ab", 10));
  EXPECT_EQ(TextWidth("", 10), 0);
}

TEST(Svg, HasWhatWasDrawn) {
  Svg svg(100, 50, "a \"label\"");
  svg.Rect({1, 2, 3, 4}, "panel");
  svg.Line(0, 0, 10.25, 5, "grid");
  svg.Circle(1, 2, 3, "dot");
  svg.Path("M0 0H5", "line");
  svg.Text(5, 6, "x < y", "muted", Anchor::kEnd);
  svg.Mark({0, 0, 1, 1}, "hit", "<b>\nsecond");
  const std::string text = svg.Inline("wide");
  EXPECT_THAT(text, HasSubstr("class=\"plot wide\" viewBox=\"0 0 100 50\" role=\"img\" "
                              "aria-label=\"a &quot;label&quot;\""));
  EXPECT_THAT(text, HasSubstr("<rect class=\"panel\" x=\"1\" y=\"2\" width=\"3\" height=\"4\"/>"));
  EXPECT_THAT(text, HasSubstr("<line class=\"grid\" x1=\"0\" y1=\"0\" x2=\"10.25\" y2=\"5\"/>"));
  EXPECT_THAT(text, HasSubstr("<circle class=\"dot\" cx=\"1\" cy=\"2\" r=\"3\"/>"));
  EXPECT_THAT(text, HasSubstr("<path class=\"line\" d=\"M0 0H5\"/>"));
  EXPECT_THAT(text, HasSubstr("text-anchor=\"end\">x &lt; y</text>"));
  EXPECT_THAT(text, HasSubstr("<title>&lt;b&gt;\nsecond</title></rect>"));
  EXPECT_THAT(text, Not(HasSubstr("<style>")));
}

TEST(Svg, FileStandsAlone) {
  const std::string file = Svg(10, 10, "x").File();
  EXPECT_THAT(file, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns="));
  EXPECT_THAT(file, HasSubstr("<style>.plot{"));
  EXPECT_THAT(file, HasSubstr("width=\"26\" height=\"26\" viewBox=\"-8 -8 26 26\""));
  EXPECT_THAT(file, Not(HasSubstr("var(")));
}

}  // namespace
}  // namespace thimble
