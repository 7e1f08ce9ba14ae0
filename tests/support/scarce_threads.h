// ScarceThreads: during its lifetime this process can start only a few more threads, as if a limit
// of the machine was reached. For tests of such failures.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "thimble/base/start_thread.h"

namespace thimble {

// Threads get stacks so large that the address space is used up after `num_more` of them. Other
// mappings have half a stack of space.
class ScarceThreads {
 public:
  explicit ScarceThreads(int num_more) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_getattr_default_np(&attributes);
    pthread_attr_getstacksize(&attributes, &usual_stack_bytes_);
    pthread_attr_destroy(&attributes);
    SetStackBytes(kStackBytes);
    EXPECT_EQ(getrlimit(RLIMIT_AS, &usual_limit_), 0);
    const rlimit limit = {
        MappedBytes() + static_cast<rlim_t>(num_more) * kStackBytes + kStackBytes / 2,
        usual_limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~ScarceThreads() {
    EXPECT_EQ(setrlimit(RLIMIT_AS, &usual_limit_), 0);
    SetStackBytes(usual_stack_bytes_);
  }
  ScarceThreads(const ScarceThreads&) = delete;
  ScarceThreads& operator=(const ScarceThreads&) = delete;

 private:
  // Much more than the stacks of ended threads that the C library caches (40 MiB).
  static constexpr size_t kStackBytes = size_t{512} << 20;

  static void SetStackBytes(size_t size_bytes) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    EXPECT_EQ(pthread_attr_setstacksize(&attributes, size_bytes), 0);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }

  static rlim_t MappedBytes() {
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    EXPECT_GT(pages, 0U);
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  }

  size_t usual_stack_bytes_ = 0;
  rlimit usual_limit_ = {};
};

// Waits until the process has `expected` threads: a joined thread is listed for a moment longer.
inline void ExpectNumThreads(int expected) {
  for (int attempt = 0; attempt < 1000 && NumThreads() != expected; ++attempt) usleep(1000);
  EXPECT_EQ(NumThreads(), expected);
}

}  // namespace thimble
