#include "thimble/train/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace thimble {
namespace {

TEST(StopSignal, NotAskedNotRequested) {
  const StopSignal stop;
  EXPECT_FALSE(stop.requested());
}

TEST(StopSignal, BothSignalsAskPolitely) {
  for (const int number : {SIGTERM, SIGINT}) {
    const StopSignal stop;
    raise(number);
    EXPECT_TRUE(stop.requested());
  }
}

TEST(StopSignal, OtherSignalsAreLeftAlone) {
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  const StopSignal stop;
  struct sigaction during {};
  sigaction(SIGHUP, nullptr, &during);
  EXPECT_EQ(before.sa_handler, during.sa_handler);
}

TEST(StopSignal, TheNextObjectStartsFresh) {
  {
    const StopSignal stop;
    raise(SIGTERM);
  }
  const StopSignal stop;
  EXPECT_FALSE(stop.requested());
}

TEST(StopSignalDeathTest, TheSecondOneEndsTheProgram) {
  EXPECT_EXIT(
      {
        const StopSignal stop;
        raise(SIGTERM);
        raise(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(StopSignalDeathTest, AfterwardsSignalsEndTheProgramAgain) {
  EXPECT_EXIT(
      {
        { const StopSignal stop; }
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace thimble
