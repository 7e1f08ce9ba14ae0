#include "thimble/data/text/subwords/merge_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/fake_dataset.h"
#include "thimble/data/text/words.h"

namespace thimble {
namespace {

using testing::HasSubstr;

std::string MergesError(const std::string& text) {
  const auto merges = MergeList::Parse(text);
  if (merges.ok()) return "read";
  EXPECT_EQ(merges.error().kind, ErrorKind::kBadInput);
  return merges.error().message;
}

// The error in the first merge.
std::string LineError(const std::string& line) { return MergesError("#version: 0.2\n" + line); }

TEST(MergeListTest, ReadsWhatItWrites) {
  const std::string text = "#version: 0.2\ne n</w>\ns c\nsc h\nü ß</w>\n";
  const auto merges = MergeList::Parse(text);
  ASSERT_TRUE(merges.ok()) << merges.error().message;
  EXPECT_EQ(merges->size(), 4);
  EXPECT_EQ(merges->ToText(), text);
}

TEST(MergeListTest, ReadsLinesOfOtherSystems) {
  const auto merges = MergeList::Parse("#version: 0.2\r\na b\r\nab c</w>");
  ASSERT_TRUE(merges.ok()) << merges.error().message;
  EXPECT_EQ(merges->ToText(), "#version: 0.2\na b\nab c</w>\n");
  // As subword-nmt reads it; what is written is read as the same again.
  EXPECT_EQ(MergeList::Parse("#version: 0.2\na b\r\r\n")->ToText(), "#version: 0.2\na b\n");
}

TEST(MergeListTest, FindsMerges) {
  const MergeList merges = MergeList::Parse("#version: 0.2\na b\nab c</w>\n").value();
  const int32_t ab = merges.FindSymbol("ab");
  EXPECT_EQ(merges.FindMerge(merges.FindSymbol("a"), merges.FindSymbol("b")), 0);
  EXPECT_EQ(merges.result(0), ab);
  EXPECT_EQ(merges.FindMerge(ab, merges.FindSymbol("c</w>")), 1);
  EXPECT_EQ(merges.FindMerge(ab, ab), -1);
  EXPECT_EQ(merges.FindSymbol("c"), -1);
  EXPECT_EQ(merges.FindMerge(-1, ab), -1);
}

TEST(MergeListTest, WrongVersion) {
  EXPECT_EQ(MergesError(""), "line 1: expected \"#version: 0.2\", got \"\"");
  EXPECT_EQ(MergesError("a b\n"), "line 1: expected \"#version: 0.2\", got \"a b\"");
  for (const char* version : {"#version: 0.1", "#version: 0.20", "#version: 0.3", "#version:0.2",
                              " #version: 0.2", "#version: 0.2 "}) {
    EXPECT_THAT(MergesError(std::string(version) + "\na b\n"), HasSubstr("line 1: expected"));
  }
}

TEST(MergeListTest, NoMerges) {
  EXPECT_EQ(MergesError("#version: 0.2\n"), "line 2: expected a merge, got the end of the file");
  EXPECT_EQ(MergesError("#version: 0.2"), MergesError("#version: 0.2\n"));
}

TEST(MergeListTest, MalformedLines) {
  for (const char* line : {"", "a", "a ", " a", "a  b", "a b c", "a b ", " "}) {
    EXPECT_EQ(LineError(std::string("x y\n") + line + "\n"),
              std::string("line 3: expected two symbols with a space between them, got \"") + line +
                  "\"");
  }
  EXPECT_THAT(LineError("a \xff\n"), HasSubstr("line 2: \"a \\ufffd\" is not UTF-8"));
  EXPECT_EQ(LineError("a b\nb a\na b\n"),
            "line 4: \"a\" \"b\": occurs a second time, first in line 2");
}

TEST(MergeListTest, ResultsThatCouldNotBeReadFromText) {
  EXPECT_THAT(LineError("a</w> b"), HasSubstr("the first symbol has the mark </w>"));
  EXPECT_THAT(LineError("ab </w>"), HasSubstr("as before version 0.2"));
  EXPECT_THAT(LineError("a< /w>"), HasSubstr("looks like the end of a word"));
  EXPECT_THAT(LineError("@ @</w>"), HasSubstr("the result is a word with a mark"));
  EXPECT_THAT(LineError("a @@</w>"), HasSubstr("the result is a word with a mark"));
  EXPECT_THAT(LineError("</w >x</w>"), HasSubstr("the result is a word with a mark"));
  EXPECT_EQ(LineError("@ @"), "read");
  EXPECT_EQ(LineError("@@ x</w>"), "read");
  EXPECT_EQ(LineError("< /w"), "read");
}

TEST(MergeListTest, TooLong) {
  const std::string longest(kMaxWordBytes - 1, 'x');
  EXPECT_EQ(LineError("x " + longest + "</w>"), "read");
  EXPECT_EQ(LineError("xx " + longest + "</w>"), "line 2: has 1006 bytes, expected at most 1005");
  std::string many = "#version: 0.2\n";
  for (int32_t i = 0; i < kMaxMerges; ++i) many += "a " + std::to_string(i) + "\n";
  EXPECT_EQ(MergesError(many), "read");
  EXPECT_THAT(MergesError(many + "b c\n"),
              HasSubstr("line 262146: too many merges, expected at most 262144"));
}

TEST(MergeListTest, ErrorsOfFilesNameThem) {
  const TestFolder folder("merge_list");
  const std::string path = folder.File("bpe.codes");
  EXPECT_EQ(MergeList::Read(path).error().message,
            path + ": cannot open: No such file or directory");
  folder.Write("bpe.codes", "#version: 0.2\na\n");
  EXPECT_THAT(MergeList::Read(path).error().message, HasSubstr(path + ": line 2: expected two"));
  folder.Write("bpe.codes", "#version: 0.2\na b\n");
  EXPECT_EQ(MergeList::Read(path)->size(), 1);
  std::filesystem::resize_file(path, (16 << 20) + 1);
  EXPECT_THAT(MergeList::Read(path).error().message,
              HasSubstr("has 16777217 bytes, expected at most 16777216"));
}

TEST(MergeListTest, WordsThatLookLikeMarksTeachNothing) {
  for (const char* word : {"haus", "@", "@@a", "<w>", "</w"}) EXPECT_TRUE(CanLearnFrom(word));
  for (const char* word : {"@@", "a@@", "@@@", "</w>", "a</w>b"}) EXPECT_FALSE(CanLearnFrom(word));
}

}  // namespace
}  // namespace thimble
