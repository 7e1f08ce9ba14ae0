#include "thimble/data/prefetcher.h"

#include <iterator>

#include "thimble/base/check.h"
#include "thimble/base/start_thread.h"

namespace thimble {

Prefetcher::Prefetcher(const BatchSource& source, std::span<const BatchBuffer> slots)
    : source_(source), slots_(slots.begin(), slots.end()) {
  THIMBLE_CHECK(!slots_.empty(), "prefetcher without slots");
}

Result<void> Prefetcher::Start(int64_t first_step, int64_t end_step) {
  THIMBLE_CHECK(!thread_.joinable(), "the prefetcher is already running");
  THIMBLE_CHECK(0 <= first_step && first_step <= end_step, "steps {} to {}", first_step, end_step);
  // No other thread yet, so no lock.
  released_ = taken_ = filled_ = first_step;
  end_ = end_step;
  stopping_ = false;
  error_.reset();
  THIMBLE_ASSIGN_OR_RETURN(
      thread_, StartThread("the thread that reads batches ahead",
                           "try --prefetch 0, which needs no thread, or fewer --threads",
                           [this] { ReadSteps(); }));
  return {};
}

Result<BatchSlot> Prefetcher::Next() {
  THIMBLE_CHECK(thread_.joinable(), "Next without Start");
  std::unique_lock lock(mutex_);
  THIMBLE_CHECK(taken_ < end_, "no step after {}", end_ - 1);
  THIMBLE_CHECK(taken_ - released_ < std::ssize(slots_), "all {} slots are held", slots_.size());
  changed_.wait(lock, [this] { return filled_ > taken_ || error_.has_value(); });
  if (filled_ == taken_) return *error_;
  const int64_t step = taken_++;
  const BatchBuffer& slot = slots_[step % slots_.size()];
  const int64_t count = source_.CountAt(step);
  return BatchSlot{step, count,
                   slot.images.first(static_cast<size_t>(count * source_.image_bytes())),
                   slot.labels.first(static_cast<size_t>(count))};
}

void Prefetcher::Release() {
  {
    const std::lock_guard lock(mutex_);
    THIMBLE_CHECK(released_ < taken_, "Release without Next");
    ++released_;
  }
  changed_.notify_all();
}

void Prefetcher::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool Prefetcher::WaitForFreeSlot() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return stopping_ || filled_ == end_ || filled_ - released_ < std::ssize(slots_);
  });
  return !stopping_ && filled_ < end_;
}

void Prefetcher::ReadSteps() {
  while (WaitForFreeSlot()) {
    // Only this thread changes filled_, and no other thread accesses the slot until it has.
    const int64_t step = filled_;
    const BatchBuffer& slot = slots_[step % slots_.size()];
    const Result<void> result = source_.Fill(step, slot.images, slot.labels);
    {
      const std::lock_guard lock(mutex_);
      if (result.ok()) {
        ++filled_;
      } else {
        error_ = result.error();
      }
    }
    changed_.notify_all();
    if (!result.ok()) return;
  }
}

}  // namespace thimble
