#include "thimble/report/pages/html_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/report/toy_record.h"

namespace thimble {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(HtmlPage, IsWholeAndAlone) {
  const std::string page = HtmlPage("a < b", "<p>x</p>\n");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>\n"));
  EXPECT_THAT(page, EndsWith("</html>\n"));
  EXPECT_THAT(page, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(page, HasSubstr("<main>\n<p>x</p>\n</main>"));
  EXPECT_THAT(page, HasSubstr("name=\"viewport\""));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  for (const char* outside : {"src=", "href=", "@import", "url(", "https:"}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
}

TEST(HtmlPage, ElementsEscapeTheirTexts) {
  const std::string hostile = "</td></p><script>";
  for (const std::string& html :
       {Heading(hostile), Paragraph(hostile), Tiles({{hostile, hostile, hostile}}),
        Figure("", hostile), Table({hostile}, {{hostile, hostile}}), Preformatted(hostile)}) {
    EXPECT_THAT(html, Not(HasSubstr("<script>")));
    EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  }
}

TEST(HtmlPage, TableHasRowsAndCells) {
  const std::string html = Table({"name", "bytes"}, {{"a", "1"}, {"b", "2"}});
  EXPECT_THAT(html, HasSubstr("<tr><th>name</th><th>bytes</th></tr>"));
  EXPECT_THAT(html, HasSubstr("<tr><th>a</th><td>1</td></tr>\n<tr><th>b</th><td>2</td></tr>"));
}

TEST(HtmlPage, BothSizesOfAPlot) {
  const std::string html = WideAndNarrow(Svg(800, 10, "x"), Svg(300, 10, "x"));
  EXPECT_THAT(html, HasSubstr("class=\"plot wide\" viewBox=\"0 0 800 10\""));
  EXPECT_THAT(html, HasSubstr("class=\"plot narrow\" viewBox=\"0 0 300 10\""));
}

}  // namespace
}  // namespace thimble
