#include "thimble/tensor/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "thimble/base/philox.h"
#include "thimble/tensor/smallest_keys.h"

namespace thimble {
namespace {

uint32_t BitsAt(std::span<const int32_t> words, int64_t word) {
  return static_cast<uint32_t>(words[static_cast<size_t>(word)]);
}

int64_t CountBits(std::span<const int32_t> words, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t word = begin; word < end; ++word) count += std::popcount(BitsAt(words, word));
  return count;
}

// The bits of one tensor, whose first block is `first_block`.
Result<void> CheckTensor(std::span<const int32_t> words, size_t tensor, int64_t first_block,
                         int64_t elements) {
  const int64_t first_word = first_block * kPatternBlockWords;
  const int64_t end_word = first_word + PatternBlocks(elements) * kPatternBlockWords;
  for (int64_t word = first_word; word < end_word; ++word) {
    const int64_t element = (word - first_word) * kPatternWordBits;
    const uint32_t outside = BitsAt(words, word) & ~PatternElementBits(elements - element);
    if (outside == 0) continue;
    return BadInput(fmt::format("pattern: position {} of tensor {} is active, expected at most {}",
                                element + std::countr_zero(outside), tensor, elements - 1));
  }
  if (CountBits(words, first_word, end_word) == 0) {
    return BadInput(
        fmt::format("pattern: tensor {} of {} elements has no active one, expected at least one",
                    tensor, elements));
  }
  return {};
}

Result<void> CheckStarts(std::span<const int32_t> words, int64_t blocks) {
  const int64_t first_start = blocks * kPatternBlockWords;
  int64_t count = 0;
  for (int64_t block = 0; block <= blocks; ++block) {
    const int64_t start = BitsAt(words, first_start + block);
    if (start != count) {
      return BadInput(
          fmt::format("pattern: block {} of {} starts at {}, but {} positions before it are active",
                      block, blocks, start, count));
    }
    if (block == blocks) break;
    count += CountBits(words, block * kPatternBlockWords, (block + 1) * kPatternBlockWords);
  }
  return {};
}

}  // namespace

int64_t PatternBlocks(std::span<const int64_t> tensors) {
  int64_t blocks = 0;
  for (const int64_t elements : tensors) blocks += PatternBlocks(elements);
  return blocks;
}

Result<void> CheckPattern(std::span<const int32_t> words, std::span<const int64_t> tensors,
                          int64_t active) {
  const int64_t blocks = PatternBlocks(tensors);
  if (words.size() != static_cast<size_t>(PatternWords(blocks))) {
    return BadInput(fmt::format("pattern: {} words, expected {} for {} blocks", words.size(),
                                PatternWords(blocks), blocks));
  }
  int64_t block = 0;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    THIMBLE_TRY(CheckTensor(words, tensor, block, tensors[tensor]));
    block += PatternBlocks(tensors[tensor]);
  }
  THIMBLE_TRY(CheckStarts(words, blocks));
  const int64_t count = BitsAt(words, PatternWords(blocks) - 1);
  if (count == active) return {};
  return BadInput(fmt::format("pattern: {} positions are active, expected {}", count, active));
}

void SetStarts(std::span<int32_t> words, int64_t blocks) {
  int64_t count = 0;
  for (int64_t block = 0; block <= blocks; ++block) {
    words[static_cast<size_t>(blocks * kPatternBlockWords + block)] = static_cast<int32_t>(count);
    if (block == blocks) break;
    count += CountBits(words, block * kPatternBlockWords, (block + 1) * kPatternBlockWords);
  }
}

int64_t ActiveAtStart(int64_t elements, double sparsity) {
  const double wanted = std::floor((1 - sparsity) * static_cast<double>(elements) + 0.1);
  return std::clamp(static_cast<int64_t>(wanted), int64_t{1}, elements);
}

void DrawPattern(std::span<int32_t> words, std::span<const int64_t> tensors, double sparsity,
                 uint64_t seed) {
  const int64_t blocks = PatternBlocks(tensors);
  THIMBLE_CHECK(words.size() == static_cast<size_t>(PatternWords(blocks)));
  std::ranges::fill(words, 0);
  const RandomSource source(seed, RandomPurpose::kPattern);
  int64_t begin = 0;  // the tensor's first position
  for (const int64_t elements : tensors) {
    const auto visit_elements = [&](const auto& visit) {
      std::array<uint32_t, 4> keys = {};
      for (int64_t i = 0; i < elements; ++i) {
        if (i % 4 == 0) keys = source.Words(0, 0, static_cast<uint64_t>((begin + i) / 4));
        visit(begin + i, keys[static_cast<size_t>(i % 4)]);
      }
    };
    SmallestKeys chosen = FindSmallestKeys(
        ActiveAtStart(elements, sparsity), [&](KeyRange /*range*/, const auto& visit) {
          visit_elements([&](int64_t /*position*/, uint32_t key) { visit(key); });
        });
    visit_elements([&](int64_t position, uint32_t key) {
      const uint32_t bit = chosen.Take(key) ? 1U << (position % kPatternWordBits) : 0;
      int32_t& word = words[static_cast<size_t>(position / kPatternWordBits)];
      word = static_cast<int32_t>(static_cast<uint32_t>(word) | bit);
    });
    begin += PatternBlocks(elements) * kPatternBlock;
  }
  SetStarts(words, blocks);
}

}  // namespace thimble
