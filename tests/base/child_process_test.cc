#include "thimble/base/child_process.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

namespace thimble {
namespace {

int64_t ChildrenPeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

TEST(RunChild, TakesInWhatItSays) {
  const auto output = RunChild("/bin/sh", {"-c", "echo out; echo err >&2; cat"});
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_EQ(output->out, "out\n");
  EXPECT_EQ(output->err, "err\n");
}

TEST(RunChild, ManyBytesOfBoth) {
  const auto output =
      RunChild("/bin/sh", {"-c", "head -c 300000 /dev/zero; head -c 200000 /dev/zero >&2"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out.size(), 300'000U);
  EXPECT_EQ(output->err.size(), 200'000U);
}

TEST(RunChild, WhatCannotBeStarted) {
  const auto output = RunChild("/no/such/program", {});
  ASSERT_FALSE(output.ok());
  EXPECT_EQ(output.error().message, "/no/such/program: No such file or directory");
}

TEST(RunChild, OneThatIsKilledSaysNothing) {
  const auto output = RunChild("/bin/sh", {"-c", "kill -9 $$; echo never"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out, "");
}

// It waits until the parent has said so, but not forever.
TEST(RunChild, IsTheFirstToEndWhenMemoryRunsOut) {
  const auto output =
      RunChild("/bin/sh", {"-c",
                           "for i in $(seq 2000); do read -r score < /proc/$$/oom_score_adj; "
                           "[ $score = 1000 ] && break; sleep 0.001; done; echo $score"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(output->out, "1000\n");
}

// Its memory is not counted as that of a child, and signals are unchanged.
TEST(RunChild, IsForgotten) {
  struct sigaction before {};
  sigaction(SIGCHLD, nullptr, &before);
  const int64_t peak_before = ChildrenPeakBytes();
  const auto output = RunChild("/bin/sh", {"-c", "echo done"});
  EXPECT_EQ(output->out, "done\n");
  EXPECT_EQ(ChildrenPeakBytes(), peak_before);
  struct sigaction after {};
  sigaction(SIGCHLD, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace thimble
