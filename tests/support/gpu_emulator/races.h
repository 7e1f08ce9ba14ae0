// Tells ThreadSanitizer what orders the accesses of the emulated threads, so that it finds races:
// accesses to the same place, one of them a write, that no barrier separates. In builds without it
// these functions do nothing.
#pragma once

#ifdef THIMBLE_EMULATOR_FINDS_RACES
#include <sanitizer/tsan_interface.h>

#include <memory>

extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
#endif

namespace gpu_emulator::races {

#ifdef THIMBLE_EMULATOR_FINDS_RACES

inline constexpr bool kAreFound = true;
inline char grid_begins;  // only the address of these matters
inline char grid_ends;

// What the host did before a kernel precedes all of its threads, and those precede what follows.
inline void BeginGrid() { __tsan_release(&grid_begins); }
inline void BeginThread() { __tsan_acquire(&grid_begins); }
inline void EndThread() { __tsan_release(&grid_ends); }
inline void EndGrid() { __tsan_acquire(&grid_ends); }

// ThreadSanitizer does not see what the thread does in between.
inline void BeginUnseen() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
inline void EndUnseen() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }

// What this thread did precedes what others do after they have called After with the same place.
inline void Before(void* place) { __tsan_release(place); }
inline void After(void* place) { __tsan_acquire(place); }

// What any of these fibers did precedes what any of them does next. A list of their `traced`.
template <class List>
void Meet(const List& fibers) {
  void* self = __tsan_get_current_fiber();
  const auto place = std::make_unique<char>();  // freeing it makes ThreadSanitizer forget it
  for (void* fiber : fibers) {
    __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
    __tsan_release(place.get());
  }
  for (void* fiber : fibers) {
    __tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
    __tsan_acquire(place.get());
  }
  __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
}

#else

inline constexpr bool kAreFound = false;
inline void BeginGrid() {}
inline void BeginThread() {}
inline void EndThread() {}
inline void EndGrid() {}
inline void BeginUnseen() {}
inline void EndUnseen() {}
inline void Before(void* /*place*/) {}
inline void After(void* /*place*/) {}
template <class List>
void Meet(const List& /*fibers*/) {}

#endif

}  // namespace gpu_emulator::races
