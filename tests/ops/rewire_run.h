// One rewiring of small tensors, for the tests of rewire: weights by position before and after it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/support/run_op.h"
#include "thimble/tensor/pattern.h"

namespace thimble {

struct RewireNumbers {
  float weight = 0;
  float momentum = 0;
  friend bool operator==(const RewireNumbers&, const RewireNumbers&) = default;
};
// The active elements of one tensor.
using RewireMap = std::map<int64_t, RewireNumbers>;

struct RewireState {
  std::vector<int64_t> elements;   // of each tensor
  std::vector<RewireMap> tensors;  // one for each
  float threshold = 1;

  int64_t active() const {
    int64_t active = 0;
    for (const RewireMap& tensor : tensors) active += static_cast<int64_t>(tensor.size());
    return active;
  }
};

struct RewireResult {
  RewireState state;
  int moved = 0;
};

inline std::vector<int> PatternOf(const RewireState& state) {
  const int64_t blocks = PatternBlocks(state.elements);
  std::vector<int> words(static_cast<size_t>(PatternWords(blocks)), 0);
  int64_t begin = 0;
  for (size_t t = 0; t < state.tensors.size(); ++t) {
    for (const auto& [element, numbers] : state.tensors[t]) {
      const int64_t position = begin + element;
      int& word = words[static_cast<size_t>(position / kPatternWordBits)];
      word = static_cast<int>(static_cast<uint32_t>(word) | 1U << (position % kPatternWordBits));
    }
    begin += PatternBlocks(state.elements[t]) * kPatternBlock;
  }
  SetStarts(words, blocks);
  return words;
}

inline RewireState StateOf(const std::vector<int64_t>& elements, const std::vector<int>& pattern,
                           const std::vector<float>& weights, const std::vector<float>& momentum) {
  RewireState state{elements, {}};
  int64_t first_block = 0;
  size_t next = 0;
  for (const int64_t count : elements) {
    const PackedPlace place =
        PackedPlaceIn(pattern.data(), PatternBlocks(elements), first_block, count, 0);
    RewireMap& tensor = state.tensors.emplace_back();
    for (int64_t element = 0; element < count; ++element) {
      if (!place.IsActive(static_cast<size_t>(element))) continue;
      tensor[element] = {weights[next], momentum.empty() ? 0 : momentum[next]};
      ++next;
    }
    first_block += place.blocks;
  }
  return state;
}

inline OpCase RewireCaseOf(const RewireState& state, Attributes attributes) {
  const Shape pool{state.active()};
  const Shape pattern{PatternWords(PatternBlocks(state.elements))};
  attributes.Set("tensors", state.elements);
  return {.op = "rewire",
          .inputs = {pattern, pool, pool, Shape{1}, Shape{1}},
          .attributes = std::move(attributes)};
}

// By each kernel. Their patterns are valid and have as many active elements as before.
inline std::vector<RewireResult> Rewire(const RewireState& state, const Attributes& attributes,
                                        int update = 0) {
  std::vector<OpData> inputs(5);
  inputs[0].integers = PatternOf(state);
  for (const RewireMap& tensor : state.tensors) {
    for (const auto& [element, numbers] : tensor) {
      inputs[1].floats.push_back(numbers.weight);
      inputs[2].floats.push_back(numbers.momentum);
    }
  }
  inputs[3].floats = {state.threshold};
  inputs[4].integers = {update};
  std::vector<RewireResult> results;
  for (const auto& outputs : RunAllKernels(RewireCaseOf(state, attributes), inputs)) {
    const auto valid = CheckPattern(outputs[0].integers, state.elements, state.active());
    EXPECT_TRUE(valid.ok()) << valid.error().message;
    if (!valid.ok()) continue;
    results.push_back(
        {StateOf(state.elements, outputs[0].integers, outputs[1].floats, outputs[2].floats),
         outputs[4].integers[0]});
    results.back().state.threshold = outputs[3].floats[0];
  }
  EXPECT_GE(results.size(), 2U);
  return results;
}

// The first `active` elements are active; weights are 1, momentum 7.
inline RewireMap Filled(int64_t active, float weight = 1) {
  RewireMap tensor;
  for (int64_t i = 0; i < active; ++i) tensor[i] = {weight, 7};
  return tensor;
}
// The first `below` weights of a tensor become 0.5.
inline RewireMap WithSmall(RewireMap tensor, int64_t below) {
  for (auto& [element, numbers] : tensor) {
    if (below-- > 0) numbers.weight = 0.5F;
  }
  return tensor;
}

}  // namespace thimble
