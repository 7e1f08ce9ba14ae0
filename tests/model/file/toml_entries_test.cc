#include "thimble/model/file/toml_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thimble {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(TomlEntries, AreInTheOrderOfTheFile) {
  const auto file = ParseToml("zebra = 1\nant = 2\n\n[cat]\nx = 3\n", "net.toml");
  ASSERT_TRUE(file.ok());
  const std::vector<Entry> entries = InOrder(*file);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].key, "zebra");
  EXPECT_EQ(entries[1].key, "ant");
  EXPECT_EQ(entries[1].place, (SourcePlace{2, 1}));
  EXPECT_EQ(entries[2].key, "cat");
  EXPECT_EQ(entries[2].node->is_table(), true);
}

TEST(TomlEntries, ErrorsHaveAPlace) {
  const auto file = ParseToml("a = 1\nb = \n", "net.toml");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(file.error().message, StartsWith("net.toml:2:"));
}

// The parser would need a stack as deep as the key.
TEST(TomlEntries, RefusesDeepKeys) {
  std::string key = "a";
  for (int i = 0; i < 10'000; ++i) key += ".a";
  EXPECT_THAT(ParseToml("x = 1\n" + key + " = 1\n", "net.toml").error().message,
              HasSubstr("net.toml:2: a key has more than"));
}

}  // namespace
}  // namespace thimble
