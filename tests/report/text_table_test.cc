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
