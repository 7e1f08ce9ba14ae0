// Arena: the one block of memory that a program runs in. Mapped once, of exactly the planned size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "thimble/base/result.h"

namespace thimble {

// The block ends at an inaccessible page and starts behind another (up to alignment), so that
// running off either end stops the program instead of changing somebody else's bytes.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  // `size_bytes` must be a multiple of kAlignment.
  static Result<Arena> Map(size_t size_bytes);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::span<std::byte> bytes() const { return {base_, size_bytes_}; }

  // Bytes of the arena that the operating system holds in memory now, in whole pages.
  int64_t ResidentBytes() const;

 private:
  Arena() = default;
  std::byte* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* base_ = nullptr;
  size_t size_bytes_ = 0;
};

// Largest resident set of this process so far.
int64_t ProcessPeakBytes();

// Hands what malloc keeps for later back to the operating system, so that it does not count beside
// an arena. Does nothing where the C library cannot.
void ReturnFreeMemory();

}  // namespace thimble
