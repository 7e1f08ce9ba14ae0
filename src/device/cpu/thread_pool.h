// ThreadPool: runs numbered chunks of one job on a fixed set of threads.
//
// Thread t starts with chunk t, so that a job's per-thread scratch is used the same way in every
// run; the remaining chunks go to whichever thread is free. Which thread runs them is not fixed, so
// a job must give the same result for any assignment: each chunk writes its own outputs, and
// reductions combine per-chunk partial results in chunk order. The number of chunks is chosen from
// the shape, never from the number of threads; that makes results bit-identical for any number of
// threads. Nothing is allocated once the threads have started.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "thimble/base/function_ref.h"
#include "thimble/base/result.h"

namespace thimble {

class ThreadPool {
 public:
  // `num_threads` >= 1 includes the calling thread, which works too. kFailed if the system refuses
  // that many threads.
  static Result<std::unique_ptr<ThreadPool>> Start(int num_threads);
  // The same, but aborts the program if the system refuses that many threads.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls job(chunk, thread) once for each chunk in [0, num_chunks) and returns when all are done.
  // `thread` in [0, num_threads()) names the calling thread, for per-thread scratch.
  // Not reentrant: a job must not start another job on the same pool.
  void Run(size_t num_chunks, FunctionRef<void(size_t chunk, size_t thread)> job);

 private:
  struct Job {
    FunctionRef<void(size_t, size_t)> body;
    size_t num_chunks;
  };
  ThreadPool() = default;
  Result<void> StartWorkers(int num_threads);
  void WorkerLoop(size_t thread);
  void TakeChunks(const Job& job, size_t thread);

  std::atomic<const Job*> job_{nullptr};
  std::atomic<uint32_t> generation_{0};  // incremented for each job; workers sleep on it
  std::atomic<size_t> next_chunk_{0};
  std::atomic<uint32_t> busy_workers_{0};
  std::atomic<bool> stopping_{false};
  int spins_ = 0;  // before a thread sleeps
  std::vector<std::thread> workers_;
};

}  // namespace thimble
