// Prefetcher: one background thread that fills a ring of slots with the batches of coming steps,
// while the trainer works on the current one. The caller owns the memory of the slots (it is part
// of the arena).
//
//   Prefetcher prefetcher(batches, slots);
//   THIMBLE_TRY(prefetcher.Start(first_step, end_step));
//   for (int64_t step = first_step; step < end_step; ++step) {
//     THIMBLE_ASSIGN_OR_RETURN(const BatchSlot batch, prefetcher.Next());
//     ...                    // batch.images stays valid
//     prefetcher.Release();  // ... until here
//   }
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batches.h"

namespace thimble {

// Memory of one slot; both spans are large enough for the largest batch.
struct BatchBuffer {
  std::span<uint8_t> images;  // (N, H, W, C)
  std::span<int32_t> labels;  // (N)
};

// A batch that has been read: views of the used part of its slot.
struct BatchSlot {
  int64_t step = 0;
  int64_t count = 0;
  std::span<const uint8_t> images;  // (count, H, W, C)
  std::span<const int32_t> labels;  // (count)
};

// Start, Next, Release and Stop are called by one thread. Between Start and Stop nothing is
// allocated, except for the text of an error.
class Prefetcher {
 public:
  // `source` and the memory of `slots` must outlive this. Requires at least one slot.
  Prefetcher(const BatchSource& source, std::span<const BatchBuffer> slots);
  ~Prefetcher() { Stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts reading the steps [first_step, end_step). kFailed if the system refuses a thread; it is
  // then not running. Must not be running already.
  Result<void> Start(int64_t first_step, int64_t end_step);

  // Waits for the batch of the next step. An error of the source is returned here, after the
  // batches read before it, and by every later call. Requires a Start, a remaining step, and fewer
  // held batches than slots.
  Result<BatchSlot> Next();

  // Releases the batch held longest. Requires a held batch.
  void Release();

  // Ends the thread, waiting at most for the batch it is reading; held batches become invalid.
  // Start may be called again. Does nothing if not running.
  void Stop();

 private:
  void ReadSteps();
  // Waits for a free slot; returns false if there is nothing more to read.
  bool WaitForFreeSlot();

  const BatchSource& source_;
  const std::vector<BatchBuffer> slots_;
  std::thread thread_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  // Steps, always first <= released <= taken <= filled <= end. Step s is in slot s mod slots.
  int64_t released_ = 0;
  int64_t taken_ = 0;
  int64_t filled_ = 0;
  int64_t end_ = 0;
  bool stopping_ = false;
  std::optional<Error> error_;
};

}  // namespace thimble
