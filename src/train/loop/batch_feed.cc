#include "thimble/train/loop/batch_feed.h"

#include <algorithm>
#include <cstring>

#include "thimble/base/byte_size.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

template <class T>
std::span<T> As(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};  // NOLINT: raw storage
}

// Touches all pages of the ring before the first step, so that reading ahead causes no page faults.
template <class T>
std::span<T> ZeroedResident(const Executor& executor, const std::string& name) {
  const std::span<std::byte> bytes = executor.ResidentBytes(name);
  std::memset(bytes.data(), 0, bytes.size());
  return As<T>(bytes);
}

size_t ImageBytes(const BatchSource& source, int64_t batch) {
  return RoundUp(static_cast<size_t>(batch * source.image_bytes()), kArenaAlignment);
}

size_t LabelBytes(int64_t batch) {
  return RoundUp(static_cast<size_t>(batch) * sizeof(int32_t), kArenaAlignment);
}

}  // namespace

BatchFeed::BatchFeed(const BatchSource& source, Executor& executor, int64_t num_slots,
                     int64_t batch)
    : source_(source), executor_(executor) {
  const bool in_residents = executor.device().arena_is_host_memory();
  if (!in_residents) {
    const auto slots = static_cast<size_t>(std::max<int64_t>(num_slots, 1));
    host_memory_ =
        executor.device().AllocateHost(slots * (ImageBytes(source, batch) + LabelBytes(batch)));
  }
  if (num_slots == 0) {
    if (!in_residents) only_slot_ = SlotInHostMemory(0, batch);
    return;
  }
  std::vector<BatchBuffer> slots;
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    slots.push_back(in_residents ? SlotInResidents(slot) : SlotInHostMemory(slot, batch));
  }
  prefetcher_.emplace(source, slots);
}

BatchBuffer BatchFeed::SlotInResidents(int64_t slot) const {
  return {ZeroedResident<uint8_t>(executor_, RingImagesName(slot)),
          ZeroedResident<int32_t>(executor_, RingLabelsName(slot))};
}

BatchBuffer BatchFeed::SlotInHostMemory(int64_t slot, int64_t batch) const {
  const size_t image_bytes = ImageBytes(source_, batch);
  const size_t slot_bytes = image_bytes + LabelBytes(batch);
  const auto bytes =
      host_memory_->bytes().subspan(static_cast<size_t>(slot) * slot_bytes, slot_bytes);
  return {As<uint8_t>(bytes.first(image_bytes)), As<int32_t>(bytes.subspan(image_bytes))};
}

Result<void> BatchFeed::Start(int64_t first_step, int64_t end_step) {
  return prefetcher_ ? prefetcher_->Start(first_step, end_step) : Result<void>();
}

void BatchFeed::WaitForCopy() {
  if (!copying_) return;
  executor_.device().Wait(*copying_);
  copying_.reset();
  if (prefetcher_) prefetcher_->Release();
}

void BatchFeed::Enqueue(const BatchSlot& batch, const TensorView& images,
                        const TensorView& labels) {
  executor_.Write(images, std::as_bytes(batch.images));
  executor_.Write(labels, std::as_bytes(batch.labels));
  copying_ = executor_.device().Mark();
}

Result<void> BatchFeed::Next(int64_t step, const TensorView& images, const TensorView& labels) {
  WaitForCopy();
  if (prefetcher_) {
    THIMBLE_ASSIGN_OR_RETURN(const BatchSlot batch, prefetcher_->Next());
    THIMBLE_CHECK(batch.step == step && batch.images.size() == images.size_bytes(),
                  "the batch read ahead is not that of step {}", step);
    Enqueue(batch, images, labels);
    if (executor_.device().arena_is_host_memory()) WaitForCopy();
    return {};
  }
  if (!only_slot_) return source_.Fill(step, images.As<uint8_t>(), labels.As<int32_t>());
  THIMBLE_TRY(source_.Fill(step, only_slot_->images, only_slot_->labels));
  const auto count = static_cast<size_t>(source_.CountAt(step));
  Enqueue({step, source_.CountAt(step), only_slot_->images.first(images.size_bytes()),
           only_slot_->labels.first(count)},
          images, labels);
  return {};
}

}  // namespace thimble
