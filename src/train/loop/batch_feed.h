// BatchFeed: hands the training loop the batches of consecutive steps, read ahead by the prefetcher
// or, without a ring, in the loop itself.
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
  // The ring has `num_slots` slots for batches of `batch` images. It lies in the executor's
  // residents, or, where the arena is not memory of the host, in memory that the device reads
  // itself. Both arguments must outlive this.
  BatchFeed(const BatchSource& source, Executor& executor, int64_t num_slots, int64_t batch);

  // kFailed where the thread that reads ahead cannot be started.
  Result<void> Start(int64_t first_step, int64_t end_step);
  // Nothing is read ahead any more.
  void Stop() {
    if (prefetcher_) prefetcher_->Stop();
  }
  // Enqueues the batch of the next step, whose number is `step`, as the inputs of the next run.
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
  std::optional<BatchBuffer> only_slot_;  // of a feed without a ring that cannot fill the arena
  std::optional<DeviceMark> copying_;     // behind the batch enqueued last
};

}  // namespace thimble
