#include "tests/support/case_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace thimble {

bool NextCaseRuns() {
  static const testing::TestInfo* counted = nullptr;
  static int64_t number = 0;
  const testing::TestInfo* running = testing::UnitTest::GetInstance()->current_test_info();
  if (running != counted) number = 0;
  counted = running;
  const char* every = std::getenv("THIMBLE_EVERY_NTH_CASE");
  return number++ % std::max(1, every == nullptr ? 1 : std::atoi(every)) == 0;
}

}  // namespace thimble
