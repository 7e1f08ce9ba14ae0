#include "thimble/base/toml_depth.h"

#include <gtest/gtest.h>

#include <string>

namespace thimble {
namespace {

std::string Key(int parts) {
  std::string key = "a";
  for (int i = 1; i < parts; ++i) key += ".a";
  return key;
}

TEST(LineOfDeepKey, IsZeroForOrdinaryText) {
  EXPECT_EQ(LineOfDeepKey(""), 0);
  EXPECT_EQ(LineOfDeepKey("a = 1\n[b.c]\nd = 1.5\n"), 0);
  EXPECT_EQ(LineOfDeepKey(Key(kMaxKeyParts) + " = 1\n" + Key(kMaxKeyParts) + " = 2\n"), 0);
}

TEST(LineOfDeepKey, NamesTheLine) {
  EXPECT_EQ(LineOfDeepKey(Key(kMaxKeyParts + 1) + " = 1\n"), 1);
  EXPECT_EQ(LineOfDeepKey("x = 1\n\n[" + Key(100'000) + "]\n"), 3);
  EXPECT_EQ(LineOfDeepKey("x = {" + Key(kMaxKeyParts + 1) + " = 1}"), 1);
}

TEST(LineOfDeepKey, PartsMayBeQuotedAndSpaced) {
  std::string key = "'a'";
  for (int i = 0; i < kMaxKeyParts; ++i) key += " . \"b.c\"";
  EXPECT_EQ(LineOfDeepKey("\n" + key + " = 1"), 2);
}

TEST(LineOfDeepKey, DotsElsewhereDoNotCount) {
  const std::string dots(100, '.');
  EXPECT_EQ(LineOfDeepKey("a = \"" + dots + "\"\n"), 0);
  EXPECT_EQ(LineOfDeepKey("a = \"\\\"" + dots + "\"\n"), 0);
  EXPECT_EQ(LineOfDeepKey("a = '" + dots + "'\n"), 0);
  EXPECT_EQ(LineOfDeepKey("a = \"\"\"\n" + dots + "\n\"\"\"\n"), 0);
  EXPECT_EQ(LineOfDeepKey("# " + dots + "\n"), 0);
  std::string numbers = "a = [";
  for (int i = 0; i < 100; ++i) numbers += "1.5, ";
  EXPECT_EQ(LineOfDeepKey(numbers + "]"), 0);
}

TEST(LineOfDeepKey, StringsThatDoNotEnd) {
  EXPECT_EQ(LineOfDeepKey("a = \"x\n" + Key(100)), 2);
  EXPECT_EQ(LineOfDeepKey("a = \"\"\"x\n" + Key(100)), 0);  // the parser reports it
  EXPECT_EQ(LineOfDeepKey("\""), 0);
  EXPECT_EQ(LineOfDeepKey("\"\\"), 0);
}

}  // namespace
}  // namespace thimble
