#include "thimble/base/start_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scarce_threads.h"

namespace thimble {
namespace {

TEST(StartThread, RunsTheBody) {
  int written = 0;
  auto thread = StartThread("a thread", "no advice", [&] { written = 7; });
  ASSERT_TRUE(thread.ok());
  thread->join();
  EXPECT_EQ(written, 7);
}

TEST(StartThread, SaysWhatCouldNotBeStarted) {
  const int before = NumThreads();
  const ScarceThreads scarce(0);
  const auto thread = StartThread("the reader", "try without", [] {});
  ASSERT_FALSE(thread.ok());
  EXPECT_EQ(thread.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(thread.error().message,
              testing::MatchesRegex("cannot start the reader: .*; this process has [0-9]+ threads? "
                                    "and may start no more; try without"));
  ExpectNumThreads(before);
}

TEST(StartThread, CountsThreads) {
  const int before = NumThreads();
  ASSERT_GE(before, 1);
  int inside = 0;
  StartThread("a thread", "", [&] { inside = NumThreads(); }).value().join();
  EXPECT_EQ(inside, before + 1);
}

}  // namespace
}  // namespace thimble
