#include "thimble/device/cpu/arena.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Arena MapArena(size_t size_bytes) {
  auto arena = Arena::Map(size_bytes);
  EXPECT_TRUE(arena.ok());
  return std::move(arena).value();
}

// Keeps the compiler from knowing the address or removing the write.
void Poke(const std::byte* address) {
  *const_cast<volatile std::byte*>(address) = std::byte{1};  // NOLINT: outside on purpose
}

TEST(ArenaTest, HasExactlyTheSizeAskedFor) {
  for (size_t size : {size_t{0}, size_t{64}, size_t{192}, PageBytes() - 64, PageBytes(),
                      PageBytes() + 64, 100 * PageBytes() + 640}) {
    const Arena arena = MapArena(size);
    EXPECT_EQ(arena.bytes().size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.bytes().data()) % Arena::kAlignment, 0U) << size;
    std::memset(arena.bytes().data(), 0x5A, size);
    for (std::byte byte : arena.bytes()) ASSERT_EQ(byte, std::byte{0x5A});
  }
}

TEST(ArenaTest, MovingTakesTheMemoryAlong) {
  Arena arena = MapArena(128);
  std::byte* data = arena.bytes().data();
  data[127] = std::byte{7};
  Arena other = std::move(arena);
  EXPECT_EQ(other.bytes().data(), data);
  Arena third = MapArena(64);
  third = std::move(other);
  EXPECT_EQ(third.bytes().data(), data);
  EXPECT_EQ(third.bytes()[127], std::byte{7});
}

TEST(ArenaDeathTest, OneByteBehindTheEndStopsTheProgram) {
  for (size_t size : {size_t{64}, PageBytes(), 3 * PageBytes() + 192}) {
    const Arena arena = MapArena(size);
    Poke(arena.bytes().data() + size - 1);
    EXPECT_DEATH(Poke(arena.bytes().data() + size), "") << size;
  }
}

TEST(ArenaDeathTest, TheByteBeforeWholePagesStopsTheProgram) {
  const Arena arena = MapArena(2 * PageBytes());
  Poke(arena.bytes().data());
  EXPECT_DEATH(Poke(arena.bytes().data() - 1), "");
}

TEST(ArenaDeathTest, ReadingBehindTheEndStopsTheProgramToo) {
  const Arena arena = MapArena(64);
  const volatile std::byte* end = arena.bytes().data() + 64;
  EXPECT_DEATH(std::exit(static_cast<int>(*end)), "");
}

TEST(ArenaDeathTest, RejectsASizeThatIsNoMultipleOfTheAlignment) {
  EXPECT_DEATH((void)Arena::Map(65), "arena of 65 bytes");
}

TEST(ArenaTest, SaysWhenTheSystemHasNoRoom) {
  const auto arena = Arena::Map(size_t{1} << 60);
  ASSERT_FALSE(arena.ok());
  EXPECT_EQ(arena.error().kind, ErrorKind::kFailed);
  EXPECT_NE(arena.error().message.find("cannot map an arena"), std::string::npos);
}

TEST(ArenaTest, ResidentBytesFollowTheFirstTouch) {
  // Larger than the block of pages that is queried at a time.
  const size_t num_pages = 3000;
  const Arena arena = MapArena(num_pages * PageBytes());
  const auto before = arena.ResidentBytes();
  ASSERT_GE(before, 0);
  EXPECT_LT(before, static_cast<int64_t>(num_pages * PageBytes()));
  for (std::byte& byte : arena.bytes()) byte = std::byte{1};
  EXPECT_EQ(arena.ResidentBytes(), static_cast<int64_t>(num_pages * PageBytes()));
}

TEST(ArenaTest, ResidentBytesAreWholePages) {
  const Arena arena = MapArena(192);
  arena.bytes()[0] = std::byte{1};
  EXPECT_EQ(arena.ResidentBytes(), static_cast<int64_t>(PageBytes()));
}

TEST(ArenaTest, ProcessPeakCoversWhatWasTouched) {
  constexpr size_t kBytes = size_t{1} << 26;
  const Arena arena = MapArena(kBytes);
  std::memset(arena.bytes().data(), 1, kBytes);
  EXPECT_GE(ProcessPeakBytes(), static_cast<int64_t>(kBytes));
}

}  // namespace
}  // namespace thimble
