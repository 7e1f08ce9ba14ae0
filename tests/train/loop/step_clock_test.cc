#include "thimble/train/loop/step_clock.h"

#include <gtest/gtest.h>

#include <thread>

namespace thimble {
namespace {

TEST(StepClock, CountsStepsThatTookAsLongAsUsual) {
  constexpr std::chrono::milliseconds kPause(2);
  StepClock clock;
  clock.Begin();
  EXPECT_EQ(clock.samples_per_second(), 0);
  clock.Skip(2);
  std::this_thread::sleep_for(kPause);
  clock.End(1000);
  clock.End(1000);
  EXPECT_EQ(clock.samples_per_second(), 0) << "two steps were in flight";
  std::this_thread::sleep_for(kPause);
  clock.End(1000);
  EXPECT_GT(clock.samples_per_second(), 0);
  EXPECT_LE(clock.samples_per_second(), 1000 / std::chrono::duration<double>(kPause).count());
}

}  // namespace
}  // namespace thimble
