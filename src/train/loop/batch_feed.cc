#include "thimble/train/loop/batch_feed.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "thimble/base/byte_size.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

// Touches all pages of the ring before the first step, so that reading ahead causes no page faults.
std::span<std::byte> ZeroedResident(const Executor& executor, const std::string& name) {
  const std::span<std::byte> bytes = executor.ResidentBytes(name);
  std::memset(bytes.data(), 0, bytes.size());
  return bytes;
}

}  // namespace

BatchFeed::BatchFeed(const BatchSource& source, Executor& executor, int64_t num_slots,
                     std::span<const BatchShape> shapes)
    : source_(source), executor_(executor) {
  for (const BatchField& field : source.fields()) {
    size_t bytes = 0;
    for (const BatchShape& shape : shapes) bytes = std::max(bytes, field.BytesOf(shape));
    field_bytes_.push_back(RoundUp(bytes, kArenaAlignment));
  }
  direct_.resize(field_bytes_.size());
  const bool in_residents = executor.device().arena_is_host_memory();
  if (!in_residents) {
    const auto slots = static_cast<size_t>(std::max<int64_t>(num_slots, 1));
    const size_t slot_bytes = std::accumulate(field_bytes_.begin(), field_bytes_.end(), size_t{0});
    host_memory_ = executor.device().AllocateHost(slots * slot_bytes);
  }
  if (num_slots == 0) {
    if (!in_residents) only_slot_ = SlotInHostMemory(0);
    return;
  }
  std::vector<SlotMemory> slots;
  for (int64_t slot = 0; slot < num_slots; ++slot) {
    slots.push_back(in_residents ? SlotInResidents(slot) : SlotInHostMemory(slot));
  }
  prefetcher_.emplace(source, std::move(slots));
}

SlotMemory BatchFeed::SlotInResidents(int64_t slot) const {
  SlotMemory memory;
  for (const BatchField& field : source_.fields()) {
    memory.push_back(ZeroedResident(executor_, RingName(slot, field.name)));
  }
  return memory;
}

SlotMemory BatchFeed::SlotInHostMemory(int64_t slot) const {
  SlotMemory memory;
  const size_t slot_bytes = std::accumulate(field_bytes_.begin(), field_bytes_.end(), size_t{0});
  std::span<std::byte> rest = host_memory_->bytes().subspan(static_cast<size_t>(slot) * slot_bytes);
  for (const size_t bytes : field_bytes_) {
    memory.push_back(rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return memory;
}

Result<void> BatchFeed::Start(int64_t first, int64_t end) {
  return prefetcher_ ? prefetcher_->Start(first, end) : Result<void>();
}

void BatchFeed::WaitForCopy() {
  if (!copying_) return;
  executor_.device().Wait(*copying_);
  copying_.reset();
  if (prefetcher_) prefetcher_->Release();
}

void BatchFeed::Enqueue(BatchArrays arrays, std::span<const TensorView> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    executor_.Write(inputs[i], arrays[i].first(inputs[i].size_bytes()));
  }
  copying_ = executor_.device().Mark();
}

Result<void> BatchFeed::Next(int64_t number, std::span<const TensorView> inputs) {
  WaitForCopy();
  if (prefetcher_) {
    THIMBLE_ASSIGN_OR_RETURN(const BatchSlot batch, prefetcher_->Next());
    THIMBLE_CHECK(batch.number == number && batch.arrays[0].size() == inputs[0].size_bytes(),
                  "the batch read ahead is not number {}", number);
    Enqueue(batch.arrays, inputs);
    if (executor_.device().arena_is_host_memory()) WaitForCopy();
    return {};
  }
  if (only_slot_.empty()) {
    for (size_t i = 0; i < inputs.size(); ++i) direct_[i] = inputs[i].bytes();
    return source_.Fill(number, direct_);
  }
  THIMBLE_TRY(source_.Fill(number, only_slot_));
  Enqueue(only_slot_, inputs);
  return {};
}

}  // namespace thimble
