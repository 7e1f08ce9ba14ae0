#include "thimble/report/text_table.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(TextTable, AlignsLeftThenRight) {
  TextTable table({"name", "bytes", "share"});
  table.AddRow({"a", "1", "100.0 %"});
  table.AddRow({"longer name", "12345", ""});
  EXPECT_EQ(table.ToString(),
            "name         bytes    share\n"
            "---------------------------\n"
            "a                1  100.0 %\n"
            "longer name  12345\n");
}

TEST(TextTable, HeaderAlone) {
  EXPECT_EQ(TextTable({"a", "bc"}).ToString(), "a  bc\n-----\n");
  EXPECT_EQ(TextTable({"a"}).ToString(), "a\n-\n");
}

TEST(TextTable, EmptyCellsLeaveNoSpacesAtTheEnd) {
  TextTable table({"", "x"});
  table.AddRow({"", ""});
  EXPECT_EQ(table.ToString(), "  x\n---\n\n");
}

// The widest line of a text.
size_t Widest(const std::string& text) {
  size_t widest = 0;
  size_t first = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', first)) {
    widest = std::max(widest, DisplayWidth(std::string_view(text).substr(first, end - first)));
    first = end + 1;
  }
  return widest;
}

TextTable Layers() {
  TextTable table({"layer", "bytes", "share", "shape"});
  table.AlignLeft(3);
  table.AddRow({"block1.layer.0.conv1.y", "13.11 MB", "3.3 %", "(100, 32, 32, 32) f32"});
  table.AddRow({"fc", "4.00 kB", "0.0 %", "(100, 10) f32"});
  return table;
}

TEST(TextTable, ColumnsCanBeAlignedLeft) {
  EXPECT_EQ(Layers().ToString(),
            "layer                      bytes  share  shape\n"
            "--------------------------------------------------------------\n"
            "block1.layer.0.conv1.y  13.11 MB  3.3 %  (100, 32, 32, 32) f32\n"
            "fc                       4.00 kB  0.0 %  (100, 10) f32\n");
}

TEST(TextTable, NarrowTerminalsGetShorterNamesFirst) {
  EXPECT_EQ(Layers().ToString({58, false}),
            "layer                  bytes  share  shape\n"
            "----------------------------------------------------------\n"
            "block1.l…0.conv1.y  13.11 MB  3.3 %  (100, 32, 32, 32) f32\n"
            "fc                   4.00 kB  0.0 %  (100, 10) f32\n");
}

TEST(TextTable, ThenColumnsAreLeftOutFromTheRight) {
  EXPECT_EQ(Layers().ToString({40, false}),
            "layer                      bytes  share\n"
            "---------------------------------------\n"
            "block1.layer.0.conv1.y  13.11 MB  3.3 %\n"
            "fc                       4.00 kB  0.0 %\n");
}

TEST(TextTable, NoLineIsWiderThanTheTerminal) {
  for (size_t width = 24; width < 80; ++width) {
    EXPECT_LE(Widest(Layers().ToString({width, false})), width);
  }
  EXPECT_EQ(Widest(Layers().ToString({200, false})), Widest(Layers().ToString()));
}

TEST(TextTable, ColourChangesNoLetter) {
  TextTable table({"a", "b"});
  table.AddRow({"x", "1"}, Ink::kBold);
  table.AddRow({"y", "2"});
  EXPECT_EQ(table.ToString({0, true}),
            "\x1b[1ma  b\x1b[0m\n\x1b[2m----\x1b[0m\n\x1b[1mx  1\x1b[0m\ny  2\n");
}

TEST(TextTable, AlignsByCodePoints) {
  TextTable table({"größe", "n"});
  table.AddRow({"abcde", "1"});
  EXPECT_EQ(table.ToString(), "größe  n\n--------\nabcde  1\n");
}

TEST(TextTableDeathTest, RowOfAnotherLength) {
  TextTable shorter({"a", "b"});
  shorter.AddRow({"1"});
  EXPECT_DEATH((void)shorter.ToString(), "a row of 1 cells");
  TextTable longer({"a", "b"});
  longer.AddRow({"1", "2", "3"});
  EXPECT_DEATH((void)longer.ToString(), "a row of 3 cells");
}

}  // namespace
}  // namespace thimble
