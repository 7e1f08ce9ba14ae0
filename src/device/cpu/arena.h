// Arena: the single block of memory that a program runs in. Mapped once, of exactly the planned
// size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "thimble/base/result.h"

namespace thimble {

// The block ends at an inaccessible page and starts after another (up to alignment), so that an
// access past either end stops the program instead of corrupting other memory.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;
  // `size_bytes` must be a multiple of kAlignment.
  static Result<Arena> Map(size_t size_bytes);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::span<std::byte> bytes() const { return {base_, size_bytes_}; }

  // Bytes of the arena that are currently resident in memory, in whole pages.
  int64_t ResidentBytes() const;

 private:
  Arena() = default;
  std::byte* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* base_ = nullptr;
  size_t size_bytes_ = 0;
};

// The peak resident set size of this process so far.
int64_t ProcessPeakBytes();

// Returns free memory that malloc caches to the operating system, so that it does not add to the
// arena. Does nothing if the C library cannot.
void ReturnFreeMemory();

}  // namespace thimble
