// Prefetcher: one background thread that fills a ring of slots with the next batches, while the
// trainer works on the current one. The caller owns the memory of the slots (it is part of the
// arena).
//
//   Prefetcher prefetcher(batches, slots);
//   THIMBLE_TRY(prefetcher.Start(first, end));
//   for (int64_t number = first; number < end; number = batches.After(number)) {
//     THIMBLE_ASSIGN_OR_RETURN(const BatchSlot batch, prefetcher.Next());
//     ...                    // batch.arrays stay valid
//     prefetcher.Release();  // ... until here
//   }
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"

namespace thimble {

// Memory of one slot: for each field of the source, enough for its largest batch.
using SlotMemory = std::vector<std::span<std::byte>>;

// A batch that has been read.
struct BatchSlot {
  int64_t number = 0;
  BatchArrays arrays;  // the used part of its slot
};

// Start, Next, Release and Stop are called by one thread. Between Start and Stop nothing is
// allocated, except for the text of an error.
class Prefetcher {
 public:
  // `source` and the memory of `slots` must outlive this. Requires at least one slot.
  Prefetcher(const BatchSource& source, std::vector<SlotMemory> slots);
  ~Prefetcher() { Stop(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts reading the batches with numbers from `first` on and below `end`. kFailed if the system
  // refuses a thread; it is then not running. Must not be running already.
  Result<void> Start(int64_t first, int64_t end);

  // Waits for the next batch. An error of the source is returned here, after the batches read
  // before it, and by every later call. Requires a Start, a remaining batch, and fewer held batches
  // than slots.
  Result<BatchSlot> Next();

  // Releases the batch held longest. Requires a held batch.
  void Release();

  // Ends the thread, waiting at most for the batch it is reading; held batches become invalid.
  // Start may be called again. Does nothing if not running.
  void Stop();

 private:
  void ReadBatches();
  // Waits for a free slot; returns false if there is nothing more to read.
  bool WaitForFreeSlot();

  const BatchSource& source_;
  const std::vector<SlotMemory> slots_;
  std::vector<SlotMemory> used_;  // by slot: the part that its batch uses
  std::thread thread_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  // Batches since Start, always released <= taken <= filled. Batch i is in slot i mod slots.
  int64_t released_ = 0;
  int64_t taken_ = 0;
  int64_t filled_ = 0;
  int64_t next_taken_ = 0;   // number of the batch to take next
  int64_t next_filled_ = 0;  // and to fill next
  int64_t end_ = 0;
  bool stopping_ = false;
  std::optional<Error> error_;
};

}  // namespace thimble
