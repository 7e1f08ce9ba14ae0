#include "thimble/base/json_text.h"

#include <gtest/gtest.h>

namespace thimble {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto json = ParseJson(text);
  EXPECT_FALSE(json.ok()) << text;
  return json.ok() ? "" : json.error().message;
}

TEST(ParseJson, TakesWhatIsJson) {
  const auto json = ParseJson(R"({"a": [1, 2.5, "]]]]"], "b": {"c": null}})");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((*json)["a"][2], "]]]]");
}

TEST(ParseJson, WhateverIsWrongIsBadInput) {
  EXPECT_EQ(ErrorOf("{"), "is torn or no JSON: byte 2 is unexpected");
  EXPECT_EQ(ErrorOf(""), "is torn or no JSON: byte 1 is unexpected");
  EXPECT_EQ(ErrorOf("{\"a\": 1e999}"), "has a number that is too large");
  EXPECT_EQ(ErrorOf("[-1e999]"), "has a number that is too large");
  EXPECT_EQ(ErrorOf("\"\xff\""), "is torn or no JSON: byte 2 is unexpected");
  EXPECT_EQ(ErrorOf(std::string(100'000, '[')), "byte 16: expected at most 16 nested brackets");
  EXPECT_EQ(ErrorOf("\"\\ud800\""), "is torn or no JSON: byte 8 is unexpected");
}

// Whole numbers that no integer holds become doubles; readers of members refuse them.
TEST(ParseJson, LongNumbersAreNoIntegers) {
  const auto json = ParseJson("[18446744073709551616]");
  ASSERT_TRUE(json.ok());
  EXPECT_FALSE((*json)[0].is_number_integer());
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(JsonText({{"name", "a\xff"}}), "{\"name\":\"a\xef\xbf\xbd\"}");
  EXPECT_EQ(JsonText({{"n", 1}}, 1), "{\n \"n\": 1\n}");
}

}  // namespace
}  // namespace thimble
