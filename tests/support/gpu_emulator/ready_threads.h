// The threads of a block that could run now, and which one runs next.
#pragma once

#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/support/gpu_emulator/block.h"

namespace gpu_emulator {

// Order 0: the first thread that is ready. Other orders draw at random, and differ from block to
// block: either one warp runs as long as it can, or all warps advance together.
class ReadyThreads {
 public:
  explicit ReadyThreads(uint32_t order) : order_(order), random_(order) {}

  // Before a block, when no thread is ready.
  void BeginBlock() { stays_with_warp_ = Draw() % 2 == 0; }
  void Add(int thread);
  bool empty() const { return warps_ == 0; }
  // Requires that one is ready.
  int Take();
  // A random permutation of [0, count), for blocks; in order if the order is 0.
  std::vector<uint32_t> Permutation(uint32_t count);

 private:
  uint32_t Draw();
  // One of the bits that are set, at random.
  int DrawBit(uint32_t bits);

  uint32_t order_;
  std::minstd_rand random_;
  bool stays_with_warp_ = false;
  int warp_ = 0;                                            // that ran last
  uint32_t warps_ = 0;                                      // a bit for each with ready threads
  std::array<uint32_t, kMaxThreads / kWarpLanes> lanes_{};  // bits for the ready lanes of each
};

}  // namespace gpu_emulator
