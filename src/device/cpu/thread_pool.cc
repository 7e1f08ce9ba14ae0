#include "thimble/device/cpu/thread_pool.h"

#include <fmt/format.h>

#include <utility>

#include "thimble/base/check.h"
#include "thimble/base/start_thread.h"

namespace thimble {
namespace {

// Jobs of one step follow each other within microseconds, and a sleep and wake-up costs tens of
// microseconds: spin for about 20 us before sleeping.
constexpr int kSpins = 2000;

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// With more threads than cores, one that spins would keep another from its work.
int SpinsOf(int num_threads) {
  return num_threads > static_cast<int>(std::thread::hardware_concurrency()) ? 0 : kSpins;
}

// Returns when `value` differs from `old`.
template <class T>
void WaitForChange(const std::atomic<T>& value, T old, int spins) {
  for (int spin = 0; spin < spins; ++spin) {
    if (value.load(std::memory_order_acquire) != old) return;
    Pause();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::Start(int num_threads) {
  std::unique_ptr<ThreadPool> pool(
      new ThreadPool);  // make_unique cannot call the private constructor
  THIMBLE_TRY(pool->StartWorkers(num_threads));
  return pool;
}

ThreadPool::ThreadPool(int num_threads) {
  const Result<void> started = StartWorkers(num_threads);
  THIMBLE_CHECK(started.ok(), "{}", started.error().message);
}

// After an error, the destructor ends the workers already started.
Result<void> ThreadPool::StartWorkers(int num_threads) {
  THIMBLE_CHECK(num_threads >= 1, "a pool of {} threads, expected at least 1", num_threads);
  spins_ = SpinsOf(num_threads);
  workers_.reserve(static_cast<size_t>(num_threads - 1));
  for (int thread = 1; thread < num_threads; ++thread) {
    THIMBLE_ASSIGN_OR_RETURN(
        std::thread worker,
        StartThread(fmt::format("worker thread {} of {}", thread, num_threads - 1),
                    fmt::format("try --threads {}", thread),
                    [this, thread] { WorkerLoop(static_cast<size_t>(thread)); }));
    workers_.push_back(std::move(worker));
  }
  return {};
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::Run(size_t num_chunks, FunctionRef<void(size_t, size_t)> job) {
  if (num_chunks == 0) return;
  if (workers_.empty() || num_chunks == 1) {
    for (size_t chunk = 0; chunk < num_chunks; ++chunk) job(chunk, 0);
    return;
  }
  const Job shared{job, num_chunks};
  // Thread t starts with chunk t, so the counter starts after those.
  next_chunk_.store(static_cast<size_t>(num_threads()), std::memory_order_relaxed);
  busy_workers_.store(static_cast<uint32_t>(workers_.size()), std::memory_order_relaxed);
  job_.store(&shared, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  TakeChunks(shared, 0);
  // Every worker must have seen this job before `shared` goes out of scope.
  for (uint32_t busy = busy_workers_.load(std::memory_order_acquire); busy != 0;
       busy = busy_workers_.load(std::memory_order_acquire)) {
    WaitForChange(busy_workers_, busy, spins_);
  }
}

void ThreadPool::TakeChunks(const Job& job, size_t thread) {
  for (size_t chunk = thread; chunk < job.num_chunks;
       chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed)) {
    job.body(chunk, thread);
  }
}

void ThreadPool::WorkerLoop(size_t thread) {
  uint32_t seen = 0;
  for (;;) {
    WaitForChange(generation_, seen, spins_);
    ++seen;
    if (stopping_.load(std::memory_order_acquire)) return;
    TakeChunks(*job_.load(std::memory_order_relaxed), thread);
    if (busy_workers_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_workers_.notify_one();
  }
}

}  // namespace thimble
