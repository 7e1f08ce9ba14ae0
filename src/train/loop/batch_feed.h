// BatchFeed: copies one batch after the other to the inputs of plans. The prefetcher reads them
// ahead; without a ring they are read in the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batch_source.h"
#include "thimble/data/prefetcher.h"
#include "thimble/exec/executor.h"

namespace thimble {

class BatchFeed {
 public:
  // The ring has `num_slots` slots for batches of any of these shapes. It is in the executor's
  // residents or, if the arena is not host memory, in pinned host memory. `source` and `executor`
  // must outlive this.
  BatchFeed(const BatchSource& source, Executor& executor, int64_t num_slots,
            std::span<const BatchShape> shapes);

  // kFailed if the thread that reads ahead cannot be started.
  Result<void> Start(int64_t first, int64_t end);
  // Stops reading ahead.
  void Stop() {
    if (prefetcher_) prefetcher_->Stop();
  }
  // Enqueues the copy of the next batch to the inputs of the next run, one for each field. Requires
  // that `number` is the batch's.
  Result<void> Next(int64_t number, std::span<const TensorView> inputs);

 private:
  SlotMemory SlotInResidents(int64_t slot) const;
  SlotMemory SlotInHostMemory(int64_t slot) const;
  void Enqueue(BatchArrays arrays, std::span<const TensorView> inputs);
  // Waits until the batch enqueued last has been copied.
  void WaitForCopy();

  const BatchSource& source_;
  Executor& executor_;
  std::unique_ptr<HostMemory> host_memory_;
  std::optional<Prefetcher> prefetcher_;
  std::vector<size_t> field_bytes_;    // of a slot, rounded up
  SlotMemory only_slot_;               // without a ring, if the host cannot write to the arena
  SlotMemory direct_;                  // without a ring, the inputs themselves
  std::optional<DeviceMark> copying_;  // after the batch enqueued last
};

}  // namespace thimble
