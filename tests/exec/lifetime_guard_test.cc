#include "thimble/exec/lifetime_guard.h"

#include <gtest/gtest.h>

#include <array>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace thimble {
namespace {

constexpr size_t kArenaBytes = 512;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kGuards = true;
bool IsOpen(const std::byte* byte) { return __asan_address_is_poisoned(byte) == 0; }
#else
constexpr bool kGuards = false;
bool IsOpen(const std::byte* /*byte*/) { return true; }
#endif

// Residents up to 64; 'a' is alive in steps 0 and 1, 'b' only in step 1, 'c' only in step 2.
class LifetimeGuardTest : public testing::Test {
 protected:
  LifetimeGuardTest() {
    plan_.residents.end_bytes = 64;
    plan_.steps.resize(3);
    plan_.placements = {{"w", 64, 0, {0, 3}, true},
                        {"a", 64, 64, {0, 2}, false},
                        {"b", 40, 128, {1, 2}, false},
                        {"c", 64, 64, {2, 3}, false}};
  }

  // Which of the bytes w[0], a[0], b[0], b[39], b[40] and the last one of the arena are accessible.
  std::array<bool, 6> OpenBytes() const {
    std::array<bool, 6> open{};
    const std::array<size_t, 6> offsets = {0, 64, 128, 167, 168, kArenaBytes - 1};
    for (size_t i = 0; i < open.size(); ++i) open[i] = IsOpen(arena_.data() + offsets[i]);
    return open;
  }

  // Without the sanitizer everything is always accessible.
  static std::array<bool, 6> Expected(std::array<bool, 6> guarded) {
    return kGuards ? guarded : std::array<bool, 6>{true, true, true, true, true, true};
  }

  alignas(64) std::array<std::byte, kArenaBytes> arena_{};
  Plan plan_;
};

TEST_F(LifetimeGuardTest, OnlyWhatLivesIsOpen) {
  LifetimeGuard guard(arena_, plan_);
  EXPECT_EQ(OpenBytes(), Expected({true, true, false, false, false, false}));
  guard.BeforeStep(0);
  guard.AfterStep(0);
  guard.BeforeStep(1);
  EXPECT_EQ(OpenBytes(), Expected({true, true, true, true, false, false}));
  guard.AfterStep(1);
  EXPECT_EQ(OpenBytes(), Expected({true, false, false, false, false, false}));
  guard.BeforeStep(2);
  EXPECT_EQ(OpenBytes(), Expected({true, true, false, false, false, false}));
}

TEST_F(LifetimeGuardTest, EverythingIsOpenAfterwardsAndUnchanged) {
  arena_.fill(std::byte{7});
  {
    LifetimeGuard guard(arena_, plan_);
    guard.AfterStep(1);
  }
  for (size_t i = 0; i < kArenaBytes; ++i) {
    ASSERT_TRUE(IsOpen(arena_.data() + i)) << i;
    ASSERT_EQ(arena_[i], std::byte{7}) << i;
  }
}

}  // namespace
}  // namespace thimble
