#include "thimble/device/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

#include "tests/support/scarce_threads.h"
#include "thimble/device/cpu/parallel_elements.h"

namespace thimble {
namespace {

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (size_t num_chunks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(num_chunks);
      pool.Run(num_chunks, [&](size_t chunk, size_t /*thread*/) { ++runs[chunk]; });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, NamesThreadsBelowTheirNumber) {
  ThreadPool pool(3);
  std::atomic<size_t> largest = 0;
  pool.Run(500, [&](size_t /*chunk*/, size_t thread) {
    size_t seen = largest;
    while (thread > seen && !largest.compare_exchange_weak(seen, thread)) {
    }
  });
  EXPECT_LT(largest, 3U);
}

TEST(ThreadPool, OneThreadNeverRunsTwoChunksAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<bool> overlap = false;
  pool.Run(2000, [&](size_t /*chunk*/, size_t thread) {
    if (++inside[thread] > 1) overlap = true;
    --inside[thread];
  });
  EXPECT_FALSE(overlap);
}

TEST(ThreadPool, ManyJobsInARow) {
  ThreadPool pool(3);
  std::vector<int> written(64);
  for (int job = 1; job <= 5000; ++job) {
    pool.Run(written.size(), [&](size_t chunk, size_t /*thread*/) { written[chunk] += 1; });
    // What the workers wrote is visible after Run, without atomics.
    if (job % 1000 == 0) {
      for (int count : written) ASSERT_EQ(count, job);
    }
  }
}

TEST(ThreadPool, WakesFromSleep) {
  ThreadPool pool(2);
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> runs = 0;
    pool.Run(10, [&](size_t, size_t) { ++runs; });
    EXPECT_EQ(runs, 10);
  }
}

TEST(ThreadPool, StopsWithoutEverRunning) {
  for (int round = 0; round < 20; ++round) ThreadPool pool(4);
}

TEST(ThreadPool, StartsAllThreads) {
  const auto pool = ThreadPool::Start(3);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ((*pool)->num_threads(), 3);
}

// Threads that were started before are ended again.
TEST(ThreadPool, AThreadThatCannotBeStartedIsAnError) {
  const int before = NumThreads();
  for (const int given : {0, 1, 2}) {
    const ScarceThreads scarce(given);
    const auto pool = ThreadPool::Start(8);
    ASSERT_FALSE(pool.ok()) << given;
    EXPECT_EQ(pool.error().kind, ErrorKind::kFailed);
    const std::string message = pool.error().message;
    const std::string which = "cannot start worker thread " + std::to_string(given + 1) + " of 7: ";
    EXPECT_EQ(message.find(which), 0U) << message;
    const std::string advice = "; try --threads " + std::to_string(given + 1);
    EXPECT_NE(message.find(advice), std::string::npos) << message;
    ExpectNumThreads(before);
    EXPECT_TRUE(ThreadPool::Start(given + 1).ok()) << "the advice works";
  }
}

TEST(ThreadPoolDeathTest, AThreadThatCannotBeStarted) {
  EXPECT_DEATH(
      {
        const ScarceThreads scarce(0);
        ThreadPool pool(3);
      },
      "cannot start worker thread 1 of 2: .*; try --threads 1");
}

TEST(ThreadPoolDeathTest, NeedsAThread) { EXPECT_DEATH(ThreadPool(0), "a pool of 0 threads"); }

TEST(ParallelElements, CoversTheRangeInFixedChunks) {
  for (size_t count : {size_t{0}, size_t{1}, kElementsPerChunk, 3 * kElementsPerChunk + 5}) {
    std::vector<int> touched(count);
    std::vector<std::vector<size_t>> borders;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<size_t> begins(count / kElementsPerChunk + 1, 0);
      ParallelElements(pool, count, [&](size_t begin, size_t end) {
        EXPECT_LT(begin, end);
        EXPECT_LE(end, count);
        begins[begin / kElementsPerChunk] = begin;
        for (size_t i = begin; i < end; ++i) ++touched[i];
      });
      borders.push_back(begins);
    }
    for (int times : touched) ASSERT_EQ(times, 2);
    EXPECT_EQ(borders[0], borders[1]);
  }
}

}  // namespace
}  // namespace thimble
