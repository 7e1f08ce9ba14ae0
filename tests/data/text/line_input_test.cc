#include "thimble/data/text/line_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace thimble {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A pipe whose other end the test writes to.
class LineInputTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::pipe(ends_.data()), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    CloseWriter();
  }
  void Write(std::string_view text) {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  void CloseWriter() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  std::vector<std::string> Next(LineInput& input, size_t most = 100) {
    std::vector<std::string> texts;
    const std::vector<InputLine> lines = input.Next(most).value();
    for (const InputLine& line : lines) texts.push_back(line.text);
    return texts;
  }
  int reader() const { return ends_[0]; }

 private:
  std::array<int, 2> ends_ = {-1, -1};
};

TEST_F(LineInputTest, GivesTheLinesThatAreThere) {
  LineInput input(reader());
  Write("one\ntwo\nthr");
  EXPECT_THAT(Next(input), ElementsAre("one", "two"));
  Write("ee\n\n");
  EXPECT_THAT(Next(input), ElementsAre("three", ""));
  CloseWriter();
  EXPECT_THAT(Next(input), IsEmpty());
  EXPECT_THAT(Next(input), IsEmpty());
}

TEST_F(LineInputTest, ALastLineNeedsNoLineFeed) {
  LineInput input(reader());
  Write("one\ntwo");
  CloseWriter();
  EXPECT_THAT(Next(input), ElementsAre("one", "two"));
  EXPECT_THAT(Next(input), IsEmpty());
}

TEST_F(LineInputTest, ATrailingLineFeedIsNoLine) {
  LineInput input(reader());
  Write("\n");
  CloseWriter();
  EXPECT_THAT(Next(input), ElementsAre(""));
  EXPECT_THAT(Next(input), IsEmpty());
}

TEST_F(LineInputTest, TakesNoMoreThanAskedFor) {
  LineInput input(reader());
  Write("1\n2\n3\n4\n5");
  CloseWriter();
  EXPECT_THAT(Next(input, 2), ElementsAre("1", "2"));
  EXPECT_THAT(Next(input, 2), ElementsAre("3", "4"));
  EXPECT_THAT(Next(input, 2), ElementsAre("5"));
  EXPECT_THAT(Next(input, 2), IsEmpty());
}

TEST_F(LineInputTest, WaitsForAFirstLine) {
  LineInput input(reader());
  std::thread writer([this] {
    Write("be");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Write("gun\n");
  });
  EXPECT_THAT(Next(input), ElementsAre("begun"));
  writer.join();
}

TEST_F(LineInputTest, KeepsAnyBytes) {
  LineInput input(reader());
  const std::string bytes("a\0\xff\r", 4);
  Write(bytes + "\n");
  EXPECT_THAT(Next(input), ElementsAre(bytes));
}

TEST_F(LineInputTest, CutsLinesThatAreTooLong) {
  LineInput input(reader());
  std::thread writer([this] {
    for (const size_t bytes : {kMaxInputLineBytes, kMaxInputLineBytes + 1, size_t{3}}) {
      const std::string line = std::string(bytes, 'x') + '\n';
      for (size_t begin = 0; begin < line.size(); begin += 4096) {
        Write(std::string_view(line).substr(begin, 4096));
      }
    }
    CloseWriter();
  });
  std::vector<std::pair<size_t, bool>> lines;
  while (true) {
    const auto next = input.Next(100).value();
    if (next.empty()) break;
    for (const InputLine& line : next) lines.emplace_back(line.text.size(), line.was_cut);
  }
  writer.join();
  EXPECT_THAT(lines, ElementsAre(std::pair(kMaxInputLineBytes, false),
                                 std::pair(kMaxInputLineBytes, true), std::pair(size_t{3}, false)));
}

TEST(LineInput, AStreamThatCannotBeReadIsAnError) {
  LineInput input(/*descriptor=*/1000);
  const auto lines = input.Next(1);
  ASSERT_FALSE(lines.ok());
  EXPECT_THAT(lines.error().message, testing::HasSubstr("cannot read"));
}

}  // namespace
}  // namespace thimble
