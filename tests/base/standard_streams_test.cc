#include "thimble/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

namespace thimble {
namespace {

// Each case needs its own descriptors, so it runs in a child process and returns its result as exit
// code.
int Open(const char* path) { return ::open(path, O_RDWR); }

TEST(StandardStreamsDeathTest, FilesNeverGetAStandardDescriptor) {
  EXPECT_EXIT(
      {
        for (const int descriptor : {0, 1, 2}) ::close(descriptor);
        ProtectStandardStreams();
        std::_Exit(Open("/dev/null") > 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(StandardStreamsDeathTest, OpenStreamsStayAsTheyAre) {
  EXPECT_EXIT(
      {
        ProtectStandardStreams();
        WriteMessage("as before\n");
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "^as before\n$");
}

TEST(StandardStreamsDeathTest, OutputToAClosedStreamIsLostAndNoticed) {
  EXPECT_EXIT(
      {
        ::close(STDOUT_FILENO);
        ProtectStandardStreams();
        WriteOutput("a result\n");
        std::_Exit(FinishOutput(0));
      },
      testing::ExitedWithCode(1),
      "^thimble: standard output: cannot write: Bad file descriptor\n$");
}

TEST(StandardStreamsDeathTest, OutputToAFullDiskIsNoticed) {
  EXPECT_EXIT(
      {
        ::dup2(Open("/dev/full"), STDOUT_FILENO);
        WriteOutput("a result\n");
        std::_Exit(FinishOutput(0));
      },
      testing::ExitedWithCode(1), "^thimble: standard output: cannot write: No space left");
  // A more specific exit code is kept.
  EXPECT_EXIT(
      {
        ::dup2(Open("/dev/full"), STDOUT_FILENO);
        WriteOutput(std::string(100'000, 'x'));  // more than the buffer: fails before the end
        std::_Exit(FinishOutput(3));
      },
      testing::ExitedWithCode(3), "No space left");
}

TEST(StandardStreamsDeathTest, AReaderThatHasGoneIsNoNoise) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (::pipe(ends) != 0) std::_Exit(9);
        ::dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        ProtectStandardStreams();
        WriteOutput("a result\n");
        std::_Exit(FinishOutput(0));
      },
      testing::ExitedWithCode(1), "^$");
}

TEST(StandardStreamsDeathTest, MessagesThatCannotBeWrittenAreLost) {
  EXPECT_EXIT(
      {
        ::dup2(Open("/dev/full"), STDERR_FILENO);
        WriteMessage(std::string(100'000, 'x'));
        std::_Exit(FinishOutput(0));
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace thimble
