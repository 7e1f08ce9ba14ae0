#include "thimble/base/json.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <nlohmann/json.hpp>

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
  EXPECT_TRUE((*json)["b"]["c"].is_null());
}

TEST(ParseJson, WhateverIsWrongIsBadInput) {
  EXPECT_EQ(ErrorOf("{"), "is truncated or not JSON: byte 2 is unexpected");
  EXPECT_EQ(ErrorOf(""), "is truncated or not JSON: byte 1 is unexpected");
  EXPECT_EQ(ErrorOf("{\"a\": 1e999}"), "has a number that is too large");
  EXPECT_EQ(ErrorOf("[-1e999]"), "has a number that is too large");
  EXPECT_EQ(ErrorOf("\"\xff\""), "is truncated or not JSON: byte 2 is unexpected");
  EXPECT_EQ(ErrorOf(std::string(100'000, '[')), "byte 16: expected at most 16 nested brackets");
  EXPECT_EQ(ErrorOf("\"\\ud800\""), "is truncated or not JSON: byte 8 is unexpected");
}

// Whole numbers that fit no integer type become doubles; readers of members reject them.
TEST(ParseJson, LongNumbersAreNoIntegers) {
  const auto json = ParseJson("[18446744073709551616, 18446744073709551615, -9223372036854775808]");
  ASSERT_TRUE(json.ok());
  EXPECT_FALSE((*json)[0].is_integer());
  EXPECT_EQ((*json)[1].integer<uint64_t>(), UINT64_MAX);
  EXPECT_EQ((*json)[1].integer<int64_t>(), std::nullopt);
  EXPECT_EQ((*json)[2].integer<int64_t>(), INT64_MIN);
  EXPECT_EQ((*json)[2].integer<uint64_t>(), std::nullopt);
}

// Like the library: the position of the first, the value of the last.
TEST(ParseJson, TheLastOfTwoMembersCounts) {
  EXPECT_EQ(ParseJson(R"({"a":1,"b":2,"a":{"c":3}})")->Dump(), R"({"a":{"c":3},"b":2})");
}

TEST(Json, IsBuiltFromWhatThereIs) {
  Json json{{"whole", 7}, {"text", std::string("x")}, {"list", std::vector<std::string>{"a", "b"}}};
  json["three"] = std::array<float, 3>{0.5F, 1, 2};
  json["map"] = std::map<std::string, int>{{"k", 1}};
  json["nested"] = {{"yes", true}, {"none", nullptr}};
  json["added"].push_back({{"n", -1}});
  json["whole"] = size_t{8};
  EXPECT_EQ(json.Dump(),
            R"({"whole":8,"text":"x","list":["a","b"],"three":[0.5,1.0,2.0],"map":{"k":1},)"
            R"("nested":{"yes":true,"none":null},"added":[{"n":-1}]})");
  json.erase("text");
  EXPECT_FALSE(json.contains("text"));
  EXPECT_EQ(json.size(), 6U);
}

TEST(Json, CopiesAreTheirOwn) {
  Json first{{"a", {{"b", 1}}}};
  const Json second = first;
  first["a"]["b"] = 2;
  EXPECT_EQ(second["a"]["b"], 1);
  EXPECT_NE(first, second);
}

TEST(Json, NumbersAreComparedByValue) {
  EXPECT_EQ(Json(3), Json(3.0));
  EXPECT_EQ(Json(uint64_t{3}), 3);
  EXPECT_NE(Json(3), "3");
  EXPECT_LT(Json(-1), UINT64_MAX);
  EXPECT_GT(Json(UINT64_MAX), UINT64_MAX - 1);
  EXPECT_FALSE(Json("a") < Json(1));
}

TEST(Json, WritesAsTheLibraryDoes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double number :
       {0.0, -0.0, 1.0, 0.1, 1e-5, 1e-4, 123456789.0, 1e15, 1e16, 5e-324, 1.7976931348623157e308,
        1.0 / 3, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(Json(number).Dump(), nlohmann::json(number).dump());
  }
  const std::string text = R"({"a":[],"b":{},"c":[1,[2,{"d":"\u00e4\n\"\\ \u0001"}]],"e":-1.5e-7})";
  const auto expected = nlohmann::ordered_json::parse(text);
  for (const int indent : {-1, 0, 1, 4}) {
    EXPECT_EQ(ParseJson(text)->Dump(indent), expected.dump(indent)) << indent;
  }
}

TEST(Json, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ((Json{{"name", "a\xff"}}.Dump()), "{\"name\":\"a\xef\xbf\xbd\"}");
  EXPECT_EQ(AsciiJsonString("\xc3\xa4\xff"), R"("\u00e4\ufffd")");
}

TEST(JsonDeathTest, WrongKindsAreTheProgrammersFault) {
  const Json json{{"a", "text"}};
  EXPECT_DEATH(json["b"], "no member 'b'");
  EXPECT_DEATH(json["a"].number(), "expected a number");
  EXPECT_DEATH(json["a"][0], "no element 0");
  EXPECT_DEATH(Json(300).get<int8_t>(), "not an integer that fits the type");
  EXPECT_DEATH(Json(1).push_back(2), "expected an array");
}

}  // namespace
}  // namespace thimble
