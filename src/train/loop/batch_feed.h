// BatchFeed: copies the batches of consecutive steps to the inputs of a plan. The prefetcher reads
// them ahead; without a ring they are read in the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batches.h"
#include "thimble/data/prefetcher.h"
#include "thimble/exec/executor.h"

namespace thimble {

class BatchFeed {
 public:
  // The ring has `num_slots` slots for batches of `batch` images. It is in the executor's residents
  // or, if the arena is not host memory, in pinned host memory. `source` and `executor` must
  // outlive this.
  BatchFeed(const BatchSource& source, Executor& executor, int64_t num_slots, int64_t batch);

  // kFailed if the thread that reads ahead cannot be started.
  Result<void> Start(int64_t first_step, int64_t end_step);
  // Stops reading ahead.
  void Stop() {
    if (prefetcher_) prefetcher_->Stop();
  }
  // Enqueues the copy of the next batch to the inputs of the next run. Requires that `step` is its
  // number.
  Result<void> Next(int64_t step, const TensorView& images, const TensorView& labels);

 private:
  BatchBuffer SlotInResidents(int64_t slot) const;
  BatchBuffer SlotInHostMemory(int64_t slot, int64_t batch) const;
  void Enqueue(const BatchSlot& batch, const TensorView& images, const TensorView& labels);
  // Waits until the batch enqueued last has been copied.
  void WaitForCopy();

  const BatchSource& source_;
  Executor& executor_;
  std::unique_ptr<HostMemory> host_memory_;
  std::optional<Prefetcher> prefetcher_;
  std::optional<BatchBuffer> only_slot_;  // without a ring, if the host cannot write to the arena
  std::optional<DeviceMark> copying_;     // after the batch enqueued last
};

}  // namespace thimble
