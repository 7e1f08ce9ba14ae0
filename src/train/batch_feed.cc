#include "thimble/train/batch_feed.h"

#include <algorithm>
#include <cstring>

#include "thimble/train/training_program.h"

namespace thimble {
namespace {

// The pages of the ring are touched before the first step, so that reading ahead never waits for
// them.
template <class T>
std::span<T> ZeroedResident(const Executor& executor, const std::string& name) {
  const std::span<std::byte> bytes = executor.ResidentBytes(name);
  std::memset(bytes.data(), 0, bytes.size());
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};  // NOLINT: raw storage
}

}  // namespace

BatchFeed::BatchFeed(const BatchSource& source, const Executor& executor, int64_t num_slots)
    : source_(source) {
  if (num_slots == 0) return;
  std::vector<BatchBuffer> slots;
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    slots.push_back({ZeroedResident<uint8_t>(executor, RingImagesName(slot)),
                     ZeroedResident<int32_t>(executor, RingLabelsName(slot))});
  }
  prefetcher_.emplace(source, slots);
}

void BatchFeed::Start(int64_t first_step, int64_t end_step) {
  if (prefetcher_) prefetcher_->Start(first_step, end_step);
}

Result<void> BatchFeed::Next(int64_t step, std::span<uint8_t> images, std::span<int32_t> labels) {
  if (!prefetcher_) return source_.Fill(step, images, labels);
  THIMBLE_ASSIGN_OR_RETURN(const BatchSlot batch, prefetcher_->Next());
  THIMBLE_CHECK(batch.step == step && batch.images.size() == images.size(), "batch of step {}",
                step);
  std::copy(batch.images.begin(), batch.images.end(), images.begin());
  std::copy(batch.labels.begin(), batch.labels.end(), labels.begin());
  prefetcher_->Release();
  return {};
}

}  // namespace thimble
