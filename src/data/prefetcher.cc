#include "thimble/data/prefetcher.h"

#include <iterator>
#include <utility>

#include "thimble/base/check.h"
#include "thimble/base/start_thread.h"

namespace thimble {

Prefetcher::Prefetcher(const BatchSource& source, std::vector<SlotMemory> slots)
    : source_(source), slots_(std::move(slots)), used_(slots_) {
  THIMBLE_CHECK(!slots_.empty(), "prefetcher without slots");
}

Result<void> Prefetcher::Start(int64_t first, int64_t end) {
  THIMBLE_CHECK(!thread_.joinable(), "the prefetcher is already running");
  THIMBLE_CHECK(0 <= first && first <= end, "batches {} to {}", first, end);
  // No other thread yet, so no lock.
  released_ = taken_ = filled_ = 0;
  next_taken_ = next_filled_ = first;
  end_ = end;
  stopping_ = false;
  error_.reset();
  THIMBLE_ASSIGN_OR_RETURN(
      thread_, StartThread("the thread that reads batches ahead",
                           "try --prefetch 0, which needs no thread, or fewer --threads",
                           [this] { ReadBatches(); }));
  return {};
}

Result<BatchSlot> Prefetcher::Next() {
  THIMBLE_CHECK(thread_.joinable(), "Next without Start");
  std::unique_lock lock(mutex_);
  THIMBLE_CHECK(next_taken_ < end_, "no batch after {}", end_ - 1);
  THIMBLE_CHECK(taken_ - released_ < std::ssize(slots_), "all {} slots are held", slots_.size());
  changed_.wait(lock, [this] { return filled_ > taken_ || error_.has_value(); });
  if (filled_ == taken_) return *error_;
  const int64_t number = next_taken_;
  const size_t slot = static_cast<size_t>(taken_) % slots_.size();
  const BatchShape shape = source_.ShapeAt(number);
  for (size_t i = 0; i < slots_[slot].size(); ++i) {
    used_[slot][i] = slots_[slot][i].first(source_.fields()[i].BytesOf(shape));
  }
  ++taken_;
  next_taken_ = source_.After(number);
  return BatchSlot{number, used_[slot]};
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
    return stopping_ || next_filled_ >= end_ || filled_ - released_ < std::ssize(slots_);
  });
  return !stopping_ && next_filled_ < end_;
}

void Prefetcher::ReadBatches() {
  while (WaitForFreeSlot()) {
    // Only this thread changes filled_, and no other thread accesses the slot until it has.
    const SlotMemory& slot = slots_[static_cast<size_t>(filled_) % slots_.size()];
    const Result<void> result = source_.Fill(next_filled_, slot);
    {
      const std::lock_guard lock(mutex_);
      if (result.ok()) {
        ++filled_;
        next_filled_ = source_.After(next_filled_);
      } else {
        error_ = result.error();
      }
    }
    changed_.notify_all();
    if (!result.ok()) return;
  }
}

}  // namespace thimble
