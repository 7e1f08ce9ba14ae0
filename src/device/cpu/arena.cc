#include "thimble/device/cpu/arena.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "thimble/base/byte_size.h"

namespace thimble {
namespace {

size_t PageBytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Error CannotMap(size_t size_bytes) {
  const int code = errno;
  return Failed(fmt::format("cannot map an arena of {} ({} bytes): {}; try a smaller --batch",
                            FormatBytes(static_cast<int64_t>(size_bytes)), size_bytes,
                            std::strerror(code)));
}

}  // namespace

Result<Arena> Arena::Map(size_t size_bytes) {
  THIMBLE_CHECK(size_bytes % kAlignment == 0, "arena of {} bytes: not a multiple of the alignment",
                size_bytes);
  const size_t page = PageBytes();
  const size_t inner_bytes = RoundUp(size_bytes, page);
  Arena arena;
  arena.mapping_bytes_ = inner_bytes + 2 * page;
  void* mapping = mmap(nullptr, arena.mapping_bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return CannotMap(size_bytes);
  arena.mapping_ = static_cast<std::byte*>(mapping);
  // A hint: kernels access many pages at once. Only whole huge pages inside the mapping are used.
  madvise(mapping, arena.mapping_bytes_, MADV_HUGEPAGE);
  // This splits the mapping, which fails if the process has too many. Guard pages are required.
  if (mprotect(arena.mapping_, page, PROT_NONE) != 0 ||
      mprotect(arena.mapping_ + page + inner_bytes, page, PROT_NONE) != 0) {
    return CannotMap(size_bytes);
  }
  // Ends exactly at the upper guard page: accessing one byte too many faults.
  arena.base_ = arena.mapping_ + page + (inner_bytes - size_bytes);
  arena.size_bytes_ = size_bytes;
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(base_, other.base_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Arena::~Arena() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

int64_t Arena::ResidentBytes() const {
  const size_t page = PageBytes();
  std::byte* first = mapping_ + page;
  const size_t num_pages = (mapping_bytes_ - 2 * page) / page;
  std::array<unsigned char, 1024> state{};
  int64_t resident_pages = 0;
  for (size_t done = 0; done < num_pages; done += state.size()) {
    const size_t count = std::min(state.size(), num_pages - done);
    if (mincore(first + done * page, count * page, state.data()) != 0) return -1;
    resident_pages += std::count_if(state.begin(), state.begin() + static_cast<ptrdiff_t>(count),
                                    [](unsigned char bits) { return (bits & 1) != 0; });
  }
  return resident_pages * static_cast<int64_t>(page);
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

int64_t ProcessPeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace thimble
