#include "thimble/data/text/tokenize_13a.h"

#include <gtest/gtest.h>

#include "tests/support/test_paths.h"
#include "thimble/base/file_reader.h"
#include "thimble/base/json.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

// The tokens with single spaces between them.
std::string Tokens13a(std::string_view line) {
  const std::string tokenized = Tokenize13a(line);
  std::string_view rest = tokenized;
  std::string joined;
  for (auto word = TakeWord(rest); !word.empty(); word = TakeWord(rest)) {
    joined += joined.empty() ? "" : " ";
    joined += word;
  }
  return joined;
}

TEST(Tokenize13aTest, Punctuation) {
  EXPECT_EQ(Tokens13a("Hello, world!"), "Hello , world !");
  EXPECT_EQ(Tokens13a("1,000.50 (about 3.5%)."), "1,000.50 ( about 3.5 % ) .");
  EXPECT_EQ(Tokens13a("it's well-known"), "it's well-known");
  EXPECT_EQ(Tokens13a("1984-85 and -5"), "1984 - 85 and -5");
  EXPECT_EQ(Tokens13a("..."), ". . .");
  EXPECT_EQ(Tokens13a(".5 and 5."), ". 5 and 5 .");
  EXPECT_EQ(Tokens13a("&quot;a&amp;lt;b&lt;skipped&gt;"), "\" a < b < skipped >");
  EXPECT_EQ(Tokens13a(""), "");
  EXPECT_EQ(Tokens13a("größe,ä."), "größe , ä .");
}

TEST(Tokenize13aTest, AgreesWithSacrebleu) {
  const auto text = ReadWholeFile(GoldenFolder() + "/bleu.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.error().message;
  const auto golden = ParseJson(*text);
  ASSERT_TRUE(golden.ok());
  ASSERT_GE((*golden)["tokenizer_13a"].size(), 20U);
  for (const Json& line : (*golden)["tokenizer_13a"]) {
    EXPECT_EQ(Tokens13a(line["line"].text()), line["tokens"].text());
  }
}

TEST(Tokenize13aTest, AnyBytesAreAccepted) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  EXPECT_NE(Tokens13a(bytes), "");
  EXPECT_EQ(Tokens13a("\xff\xfe.x"), "\xff\xfe . x");
}

}  // namespace
}  // namespace thimble
