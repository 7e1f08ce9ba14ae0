#include "thimble/report/csv.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

TEST(CsvField, IsQuotedWhereItHasToBe) {
  EXPECT_EQ(CsvField("conv1"), "conv1");
  EXPECT_EQ(CsvField(""), "");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
}

}  // namespace
}  // namespace thimble
