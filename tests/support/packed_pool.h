// Packed tensors for tests: a pattern made by hand and pools of numbers, filled with a guard value
// where nothing was stored.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tests/support/guarded_buffer.h"
#include "thimble/device/cpu/numbers.h"
#include "thimble/tensor/tensor_view.h"

namespace thimble {

// Numbers in [-1, 1), a hash of their place: faster than normal ones, for many large calls.
inline std::vector<float> HashedNumbers(int64_t count, uint32_t stream) {
  std::vector<float> numbers(static_cast<size_t>(count));
  uint32_t hash = 2654435769U * (stream + 1);
  for (float& number : numbers) {
    hash ^= hash << 13;
    hash ^= hash >> 17;
    hash ^= hash << 5;
    number = static_cast<float>(hash >> 8) * 0x1p-23F - 1;
  }
  return numbers;
}

// Which elements of several tensors are active: each with this probability.
class TestPattern {
 public:
  TestPattern(std::vector<int64_t> elements, double density, uint32_t seed)
      : elements_(std::move(elements)) {
    for (const int64_t count : elements_) {
      first_blocks_.push_back(blocks_);
      blocks_ += PatternBlocks(count);
    }
    words_.resize(static_cast<size_t>(PatternWords(blocks_)));
    for (size_t t = 0; t < elements_.size(); ++t) SetBits(t, density, seed);
    CountStarts();
  }

  PackedPlace Place(size_t tensor) const { return PlaceIn(words_.data(), tensor); }
  // The same in a copy of the pattern.
  PackedPlace PlaceIn(const void* copy, size_t tensor) const {
    return PackedPlaceIn(copy, blocks_, first_blocks_[tensor], elements_[tensor],
                         static_cast<int64_t>(tensor));
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }
  int64_t active() const { return words_.back(); }
  int64_t tensors() const { return static_cast<int64_t>(elements_.size()); }

  // The active ones of the elements of a tensor, and the elements with zeros between them.
  std::vector<float> Packed(size_t tensor, const std::vector<float>& dense) const {
    const PackedPlace place = Place(tensor);
    std::vector<float> packed;
    for (size_t i = 0; i < dense.size(); ++i) {
      if (place.IsActive(i)) packed.push_back(dense[i]);
    }
    return packed;
  }
  std::vector<float> Masked(size_t tensor, std::vector<float> dense) const {
    const PackedPlace place = Place(tensor);
    for (size_t i = 0; i < dense.size(); ++i) {
      if (!place.IsActive(i)) dense[i] = 0;
    }
    return dense;
  }

 private:
  void SetBits(size_t tensor, double density, uint32_t seed) {
    const auto stream = 16 * seed + static_cast<uint32_t>(tensor);
    const std::vector<float> numbers = HashedNumbers(elements_[tensor], stream);
    uint32_t* bits = words_.data() + first_blocks_[tensor] * kPatternBlockWords;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const bool is_active = numbers[i] < 2 * static_cast<float>(density) - 1;
      bits[i / kPatternWordBits] |= uint32_t{is_active} << (i % kPatternWordBits);
    }
  }
  void CountStarts() {
    uint32_t* starts = words_.data() + blocks_ * kPatternBlockWords;
    uint32_t active = 0;
    for (int64_t word = 0; word < blocks_ * kPatternBlockWords; ++word) {
      if (word % kPatternBlockWords == 0) starts[word / kPatternBlockWords] = active;
      active += static_cast<uint32_t>(std::popcount(words_[static_cast<size_t>(word)]));
    }
    starts[blocks_] = active;
  }

  std::vector<int64_t> elements_;
  std::vector<int64_t> first_blocks_;
  int64_t blocks_ = 0;
  std::vector<uint32_t> words_;
};

// Numbers of all tensors of a pattern; every byte begins as 0xFF: NaN.
class TestPool {
 public:
  TestPool(const TestPattern& pattern, DType dtype)
      : pattern_(pattern),
        dtype_(dtype),
        buffer_(StorageBytes(
            dtype, static_cast<size_t>(PoolNumbers(dtype, pattern.active(), pattern.tensors())))) {}

  TensorView View(size_t tensor, const Shape& shape) {
    return {buffer_.data(), dtype_, shape, pattern_.Place(tensor)};
  }
  const TestPattern& pattern() const { return pattern_; }
  std::span<std::byte> bytes_and_guards() { return buffer_.bytes_and_guards(); }
  // Stores the active ones of a tensor's elements, and reads them again.
  void Store(size_t tensor, const Shape& shape, const std::vector<float>& dense) {
    const std::vector<float> packed = pattern_.Packed(tensor, dense);
    EncodeNumbers(packed.data(), packed.size(), NumbersOf(StoredNumbers(View(tensor, shape))));
  }
  std::vector<float> Load(size_t tensor, const Shape& shape) {
    const TensorView stored = StoredNumbers(View(tensor, shape));
    std::vector<float> numbers(static_cast<size_t>(stored.shape.elements()));
    DecodeNumbers(ConstNumbersOf(stored), numbers.size(), numbers.data());
    return numbers;
  }
  // Whether every byte outside the tensor still has its first value.
  bool OthersIntact(size_t tensor, const Shape& shape) {
    const TensorView own = StoredNumbers(View(tensor, shape));
    const auto* begin = static_cast<const std::byte*>(own.data);
    const std::byte* end = begin + own.size_bytes();
    bool intact = buffer_.GuardsIntact();
    for (const std::byte& byte : buffer_.bytes()) {
      intact &= (&byte >= begin && &byte < end) || byte == std::byte{0xFF};
    }
    return intact;
  }

 private:
  const TestPattern& pattern_;
  DType dtype_;
  GuardedBuffer buffer_;
};

}  // namespace thimble
