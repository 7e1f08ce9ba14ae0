#include "tests/support/gpu_emulator/ready_threads.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace gpu_emulator {

// The lower bits of minstd_rand are less random.
uint32_t ReadyThreads::Draw() { return order_ == 0 ? 0 : static_cast<uint32_t>(random_() >> 8); }

int ReadyThreads::DrawBit(uint32_t bits) {
  const auto first = static_cast<int>(Draw() % 32);
  return (std::countr_zero(std::rotr(bits, first)) + first) % 32;
}

void ReadyThreads::Add(int thread) {
  const int warp = thread / kWarpLanes;
  warps_ |= 1U << warp;
  lanes_[static_cast<size_t>(warp)] |= 1U << thread % kWarpLanes;
}

int ReadyThreads::Take() {
  if (!stays_with_warp_ || (warps_ >> warp_ & 1) == 0) warp_ = DrawBit(warps_);
  uint32_t& lanes = lanes_[static_cast<size_t>(warp_)];
  const int lane = DrawBit(lanes);
  lanes &= ~(1U << lane);
  if (lanes == 0) warps_ &= ~(1U << warp_);
  return warp_ * kWarpLanes + lane;
}

std::vector<uint32_t> ReadyThreads::Permutation(uint32_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0U);
  if (order_ != 0) std::shuffle(numbers.begin(), numbers.end(), random_);
  return numbers;
}

}  // namespace gpu_emulator
