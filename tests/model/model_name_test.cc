#include "thimble/model/model_name.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

Result<NameParts> Parse(std::string_view name) {
  return ParseModelName(name, {"width", "dropout"}, "width=N or dropout=RATE");
}

TEST(ParseModelName, FamilyAndOptions) {
  const auto parts = Parse("net-3:dropout=0.5,width=");
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ(parts->family, "net-3");
  ASSERT_EQ(parts->options.size(), 2U);
  EXPECT_EQ(parts->options[0], std::pair(std::string_view("dropout"), std::string_view("0.5")));
  EXPECT_EQ(parts->options[1], std::pair(std::string_view("width"), std::string_view()));
  EXPECT_TRUE(Parse("net-3")->options.empty());
}

TEST(ParseModelName, WrongOptions) {
  EXPECT_EQ(Parse("net:depth=2").error().message,
            "--model net:depth=2: unknown option 'depth'; expected width=N or dropout=RATE");
  EXPECT_EQ(Parse("net:").error().message,
            "--model net:: unknown option ''; expected width=N or dropout=RATE");
  EXPECT_EQ(Parse("net:width=1,width=2").error().message,
            "--model net:width=1,width=2: option 'width' is given twice");
}

TEST(ParseDropoutRate, IsAtLeastZeroAndBelowOne) {
  EXPECT_EQ(*ParseDropoutRate("net", "dropout", "0"), 0);
  EXPECT_EQ(*ParseDropoutRate("net", "dropout", "0.25"), 0.25);
  for (const char* wrong : {"1", "-0.1", "", "x", "0.1x", "nan", "inf"}) {
    EXPECT_FALSE(ParseDropoutRate("net", "dropout", wrong).ok()) << wrong;
  }
  EXPECT_EQ(ParseDropoutRate("net", "drop", "2").error().message,
            "--model net: drop=2: expected a rate of at least 0 and below 1");
}

}  // namespace
}  // namespace thimble
