#include "thimble/train/loop/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace thimble {
namespace {

TEST(StopSignal, NotAskedNotRequested) {
  const StopSignal stop;
  EXPECT_FALSE(stop.requested());
}

TEST(StopSignal, EachAsksPolitely) {
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    const StopSignal stop;
    raise(number);
    EXPECT_TRUE(stop.requested());
    EXPECT_EQ(stop.number(), number);
  }
}

TEST(StopSignal, TheFirstOneIsRemembered) {
  const StopSignal stop;
  raise(SIGHUP);
  raise(SIGTERM);
  EXPECT_EQ(stop.number(), SIGHUP);
}

// nohup starts programs with SIGHUP ignored.
TEST(StopSignal, WhatIsIgnoredStaysIgnored) {
  signal(SIGHUP, SIG_IGN);
  {
    const StopSignal stop;
    raise(SIGHUP);
    EXPECT_FALSE(stop.requested());
  }
  EXPECT_EQ(signal(SIGHUP, SIG_DFL), SIG_IGN);
}

TEST(StopSignal, OtherSignalsAreLeftAlone) {
  struct sigaction before {};
  sigaction(SIGUSR1, nullptr, &before);
  const StopSignal stop;
  struct sigaction during {};
  sigaction(SIGUSR1, nullptr, &during);
  EXPECT_EQ(before.sa_handler, during.sa_handler);
}

TEST(StopSignal, HaveNames) {
  EXPECT_EQ(SignalName(SIGINT), "SIGINT");
  EXPECT_EQ(SignalName(SIGTERM), "SIGTERM");
  EXPECT_EQ(SignalName(SIGHUP), "SIGHUP");
  EXPECT_EQ(SignalName(63), "signal 63");
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
