// BatchFeed: hands the training loop the batches of consecutive steps, read ahead by the prefetcher
// or, without a ring, in the loop itself.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/data/batches.h"
#include "thimble/data/prefetcher.h"
#include "thimble/exec/executor.h"

namespace thimble {

class BatchFeed {
 public:
  // The ring lies in the executor's residents; `num_slots` of them. Both arguments must outlive
  // this.
  BatchFeed(const BatchSource& source, const Executor& executor, int64_t num_slots);

  void Start(int64_t first_step, int64_t end_step);
  // Writes the batch of the next step, whose number is `step`.
  Result<void> Next(int64_t step, std::span<uint8_t> images, std::span<int32_t> labels);

 private:
  const BatchSource& source_;
  std::optional<Prefetcher> prefetcher_;
};

}  // namespace thimble
