#include "thimble/ops/rewire/moved_pools.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "thimble/device/cpu/numbers.h"
#include "thimble/device/cpu/thread_pool.h"

namespace thimble {
namespace {

// Calls move(bit is old, bit is new) for each position of a block that is active in one of them.
template <class Move>
void VisitBlock(const PatternChange& change, int64_t block, const Move& move) {
  for (int64_t w = block * kPatternBlockWords; w < (block + 1) * kPatternBlockWords; ++w) {
    const uint32_t before = change.old_words[w];
    const uint32_t after = change.new_words[w];
    for (uint32_t rest = before | after; rest != 0; rest &= rest - 1) {
      const uint32_t bit = rest & (~rest + 1);
      move((before & bit) != 0, (after & bit) != 0);
    }
  }
}

// Numbers of 16 or 32 bits, as integers: their bits stay.
template <class Stored>
void MoveNumbers(ThreadPool& pool, const PatternChange& change, const TensorView& old_pool,
                 std::byte* new_pool) {
  constexpr int64_t kChunkBlocks = 64;  // as many positions as chunks of other ops have
  const auto chunks = static_cast<size_t>((change.blocks + kChunkBlocks - 1) / kChunkBlocks);
  const auto* from = static_cast<const Stored*>(old_pool.data);
  auto* to = reinterpret_cast<Stored*>(new_pool);
  pool.Run(chunks, [&](size_t chunk, size_t /*thread*/) {
    const int64_t begin = static_cast<int64_t>(chunk) * kChunkBlocks;
    const Stored* next_old = from + change.old_starts()[begin];
    Stored* next_new = to + change.new_starts()[begin];
    for (int64_t block = begin; block < std::min(change.blocks, begin + kChunkBlocks); ++block) {
      VisitBlock(change, block, [&](bool was_active, bool is_active) {
        const Stored number = was_active ? *next_old++ : Stored{0};
        if (is_active) *next_new++ = number;
      });
    }
  });
  const auto active = static_cast<int64_t>(change.new_starts()[change.blocks]);
  std::fill(to + active, to + old_pool.shape.elements(), Stored{0});
}

// Reads the numbers of a tensor in 8 bits, one after the other.
class BlockReader {
 public:
  BlockReader(const std::byte* blocks, size_t count) : blocks_(blocks), count_(count) {}

  float Next() {
    if (place_ % kQ8BlockNumbers == 0) {
      const size_t read = std::min(kQ8BlockNumbers, count_ - place_);
      DecodeNumbers({blocks_ + place_ / kQ8BlockNumbers * kQ8BlockBytes, DType::kQ8}, read,
                    numbers_);
    }
    return numbers_[place_++ % kQ8BlockNumbers];
  }

 private:
  const std::byte* blocks_;
  size_t count_;
  size_t place_ = 0;
  alignas(64) float numbers_[kQ8BlockNumbers];
};

// Writes them. Finish writes what is left.
class BlockWriter {
 public:
  explicit BlockWriter(std::byte* blocks) : blocks_(blocks) {}

  void Add(float number) {
    numbers_[count_++] = number;
    if (count_ == kQ8BlockNumbers) Finish();
  }
  void Finish() {
    EncodeNumbers(numbers_, count_, {blocks_, DType::kQ8});
    blocks_ += kQ8BlockBytes;
    count_ = 0;
  }

 private:
  std::byte* blocks_;
  size_t count_ = 0;
  alignas(64) float numbers_[kQ8BlockNumbers];
};

void MoveTensorIn8Bits(const PatternChange& change, const RewireTensor& tensor, int64_t index,
                       const std::byte* old_pool, std::byte* new_pool) {
  const PackedPlace before =
      PackedPlaceIn(change.old_words, change.blocks, tensor.first_block, tensor.elements, index);
  const PackedPlace after =
      PackedPlaceIn(change.new_words, change.blocks, tensor.first_block, tensor.elements, index);
  BlockReader reader(old_pool + before.OffsetBytes(DType::kQ8), before.count());
  BlockWriter writer(new_pool + after.OffsetBytes(DType::kQ8));
  for (int64_t block = 0; block < before.blocks; ++block) {
    VisitBlock(change, tensor.first_block + block, [&](bool was_active, bool is_active) {
      const float number = was_active ? reader.Next() : 0.0F;
      if (is_active) writer.Add(number);
    });
  }
  writer.Finish();
}

}  // namespace

void MovePool(ThreadPool& pool, const PatternChange& change, std::span<const RewireTensor> tensors,
              const TensorView& old_pool, std::byte* new_pool) {
  if (old_pool.dtype == DType::kF32) {
    return MoveNumbers<uint32_t>(pool, change, old_pool, new_pool);
  }
  if (old_pool.dtype != DType::kQ8) {
    return MoveNumbers<uint16_t>(pool, change, old_pool, new_pool);
  }
  std::memset(new_pool, 0, old_pool.size_bytes());
  pool.Run(tensors.size(), [&](size_t index, size_t /*thread*/) {
    MoveTensorIn8Bits(change, tensors[index], static_cast<int64_t>(index),
                      static_cast<const std::byte*>(old_pool.data), new_pool);
  });
}

}  // namespace thimble
