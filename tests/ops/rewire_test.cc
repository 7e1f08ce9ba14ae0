#include "thimble/ops/rewire/rewire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "tests/ops/rewire_run.h"
#include "tests/support/case_draw.h"
#include "tests/support/op_check.h"
#include "tests/support/op_inputs.h"

namespace thimble {
namespace {

using testing::HasSubstr;

const Attributes kSet = {{"method", int64_t{1}}, {"fraction", 0.25}};
Attributes Dsr(int64_t quota) { return {{"quota", quota}, {"seed", int64_t{5}}}; }

// A valid pattern: `active` of each tensor's elements, drawn at random.
RewireState DrawnState(const std::vector<int64_t>& elements, const std::vector<int64_t>& active,
                       float threshold, uint64_t seed) {
  RewireState state{elements, {}, threshold};
  const RandomSource source(seed, RandomPurpose::kTest);
  for (size_t t = 0; t < elements.size(); ++t) {
    RewireMap& tensor = state.tensors.emplace_back();
    std::array<uint32_t, 4> words = {};
    for (int64_t i = 0; i < elements[t]; ++i) {
      // As many of the elements that are left as are still wanted.
      const auto wanted = active[t] - static_cast<int64_t>(tensor.size());
      if (i % 4 == 0) words = source.Words(0, static_cast<uint32_t>(t), static_cast<uint64_t>(i));
      const uint32_t word = words[static_cast<size_t>(i % 4)];
      if (UniformBelow(word, static_cast<uint32_t>(elements[t] - i)) < wanted) tensor[i] = {};
    }
  }
  return state;
}

OpCase CaseFor(const RewireState& state, Attributes attributes) {
  OpCase op_case = RewireCaseOf(state, std::move(attributes));
  const std::vector<int> pattern = PatternOf(state);
  op_case.given_inputs[0].assign(pattern.begin(), pattern.end());
  op_case.given_inputs[3] = {state.threshold};
  return op_case;
}

OpCase WithoutMomentum(OpCase op_case) {
  op_case.op = "rewire_plain";
  op_case.inputs.erase(op_case.inputs.begin() + 2);
  op_case.given_inputs[2] = op_case.given_inputs[3];
  op_case.given_inputs.erase(3);
  return op_case;
}

OpCase RandomRewire(CaseDraw& draw) {
  std::vector<int64_t> elements;
  std::vector<int64_t> active;
  const double density = draw.OneOf({0.01, 0.2, 0.5, 0.9, 1.0});
  for (int64_t tensors = draw.Between(1, 6); tensors > 0; --tensors) {
    elements.push_back(draw.OneIn(3) ? draw.Between(1, 6000) : draw.Size(600));
    const auto most = static_cast<int64_t>(density * static_cast<double>(elements.back()));
    active.push_back(draw.OneIn(4) ? elements.back() : draw.Between(1, std::max<int64_t>(1, most)));
  }
  // Weights are standard normal.
  const auto threshold = static_cast<float>(draw.OneOf({0.0, 1e-3, 0.1, 0.7, 2.0, 1e20}));
  const Attributes attributes = {{"method", draw.Between(0, 1)},
                                 {"quota", draw.Between(0, 3000)},
                                 {"fraction", draw.OneOf({0.0, 0.03, 0.3, 1.0})},
                                 {"seed", draw.Between(0, 1000)}};
  return CaseFor(DrawnState(elements, active, threshold, draw.Word()), attributes);
}

}  // namespace

std::vector<OpCase> RewireCases() {
  std::vector<OpCase> cases;
  const std::vector<RewireState> states = {
      DrawnState({1}, {1}, 0.5F, 1), DrawnState({40}, {7}, 0.5F, 2),
      DrawnState({256, 257, 1, 31}, {256, 100, 1, 1}, 0.5F, 3),
      DrawnState({300, 200}, {300, 198}, 1, 4),  // hardly any room
      DrawnState({9000, 20000, 700}, {900, 4000, 700}, 0.1F, 5)};
  for (const Attributes& method : {Dsr(100), kSet}) {
    for (const RewireState& state : states) cases.push_back(CaseFor(state, method));
    cases.push_back(WithoutMomentum(cases.back()));
  }
  cases.push_back(CaseFor(DrawnState({300, 70}, {30, 20}, 0.5F, 6), Dsr(10)));
  cases.back().inputs[2] = Shape{PoolNumbers(DType::kQ8, 50, 2)};
  return cases;
}

OpCase Random_rewire(CaseDraw& draw) { return RandomRewire(draw); }
OpCase Random_rewire_plain(CaseDraw& draw) { return WithoutMomentum(RandomRewire(draw)); }

namespace {

// A state whose weights are 0.01 * normal numbers.
RewireState RandomState(const std::vector<int64_t>& elements, double sparsity, uint64_t seed) {
  std::vector<int> pattern(static_cast<size_t>(PatternWords(PatternBlocks(elements))));
  DrawPattern(pattern, elements, sparsity, seed);
  const auto count = static_cast<size_t>(pattern.back());
  std::vector<float> weights(count);
  std::vector<float> momentum(count);
  const auto normals = RandomNormals(seed, 1, 2 * count);
  for (size_t i = 0; i < count; ++i) {
    weights[i] = 0.01F * static_cast<float>(normals[i]);
    momentum[i] = static_cast<float>(normals[count + i]);
  }
  return StateOf(elements, pattern, weights, momentum);
}

// Dropped and grown elements of one tensor.
struct TensorChange {
  std::vector<int64_t> dropped;
  std::vector<int64_t> grown;
};

// Elements that stay keep their numbers; those that grow were not active before and have zeros.
TensorChange ChangeOf(const RewireMap& before, const RewireMap& after) {
  TensorChange change;
  for (const auto& [element, numbers] : before) {
    const auto found = after.find(element);
    if (found == after.end()) {
      change.dropped.push_back(element);
    } else {
      EXPECT_EQ(found->second, numbers) << "element " << element;
    }
  }
  for (const auto& [element, numbers] : after) {
    if (before.contains(element)) continue;
    change.grown.push_back(element);
    EXPECT_EQ(numbers, RewireNumbers{}) << "element " << element;
  }
  return change;
}

std::vector<size_t> GrownIn(const RewireState& before, const RewireState& after) {
  std::vector<size_t> grown;
  for (size_t t = 0; t < before.tensors.size(); ++t) {
    grown.push_back(ChangeOf(before.tensors[t], after.tensors[t]).grown.size());
  }
  return grown;
}

TEST(RewireDsr, DropsWhatIsBelowTheThreshold) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RewireState before = RandomState({700, 90, 1200}, 0.7, seed);
    before.threshold = 0.002F;
    for (const RewireResult& result : Rewire(before, Dsr(10), static_cast<int>(seed))) {
      int moved = 0;
      for (size_t t = 0; t < before.tensors.size(); ++t) {
        const RewireMap& tensor = before.tensors[t];
        const TensorChange change = ChangeOf(tensor, result.state.tensors[t]);
        std::vector<int64_t> below;
        for (const auto& [element, numbers] : tensor) {
          if (std::abs(numbers.weight) < before.threshold) below.push_back(element);
        }
        EXPECT_EQ(change.dropped, below);
        moved += static_cast<int>(below.size());
      }
      EXPECT_GT(moved, 0);
      EXPECT_EQ(result.moved, moved);
    }
  }
}

TEST(RewireDsr, KeepsTheLargestIfAllAreBelowTheThreshold) {
  RewireState before{{50, 60}, {Filled(5, 0.5F), Filled(30)}};
  before.tensors[0][3].weight = -0.75F;
  before.tensors[0][4].weight = 0.75F;
  for (const RewireResult& result : Rewire(before, Dsr(4))) {
    EXPECT_EQ(ChangeOf(before.tensors[0], result.state.tensors[0]).dropped,
              (std::vector<int64_t>{0, 1, 2, 4}));
    EXPECT_EQ(result.moved, 4);
  }
}

TEST(RewireDsr, KeepsNanAndWhatEqualsTheThreshold) {
  RewireState before{{50}, {Filled(6, 0.5F)}};
  before.tensors[0][1].weight = -1;
  before.tensors[0][2].weight = std::nanf("");
  before.tensors[0][3].weight = -std::numeric_limits<float>::infinity();
  for (const RewireResult& result : Rewire(before, Dsr(3))) {
    const RewireMap& after = result.state.tensors[0];
    EXPECT_EQ(result.moved, 3);
    EXPECT_TRUE(after.contains(1) && after.contains(2) && after.contains(3));
    EXPECT_TRUE(std::isnan(after.at(2).weight));
  }
}

TEST(RewireDsr, AdjustsTheThreshold) {
  RewireState before{{500}, {WithSmall(Filled(200), 99)}};
  const auto next = [&](int64_t quota) {
    const auto results = Rewire(before, Dsr(quota));
    for (const RewireResult& result : results) {
      EXPECT_EQ(result.state.threshold, results[0].state.threshold);
    }
    return results[0].state.threshold;
  };
  EXPECT_EQ(next(89), 0.5F);  // 99 > 97.9
  EXPECT_EQ(next(90), 1);     // 99 = 1.1 * 90
  EXPECT_EQ(next(99), 1);
  EXPECT_EQ(next(110), 1);  // 99 = 0.9 * 110
  EXPECT_EQ(next(111), 2);  // 99 < 99.9
}

TEST(RewireDsr, KeepsTheThresholdFiniteAndPositive) {
  RewireState before{{500}, {Filled(200)}};
  const auto next = [&](float threshold, int64_t quota) {
    before.threshold = threshold;
    const auto results = Rewire(before, Dsr(quota));
    EXPECT_EQ(results[0].state.threshold, results[1].state.threshold);
    return results[0].state.threshold;
  };
  EXPECT_EQ(next(0, 0), 1e-30F);
  EXPECT_EQ(next(-1, 0), 1e-30F);
  EXPECT_EQ(next(NAN, 0), 1e-30F);
  EXPECT_EQ(next(INFINITY, 200), 1e30F);
  EXPECT_EQ(next(0.8e30F, 10000), 1e30F);
  EXPECT_EQ(next(1.5e-30F, 0), 1.5e-30F);
}

TEST(RewireDsr, SharesAreInProportionToTheWeightsKept) {
  const RewireState before{{100, 100, 100},
                           {WithSmall(Filled(38), 8), Filled(10), WithSmall(Filled(42), 2)}};
  for (const RewireResult& result : Rewire(before, Dsr(10))) {
    // Kept: 30, 10, 40 of 80; dropped: 10. Shares 3.75, 1.25 and 5.
    EXPECT_EQ(GrownIn(before, result.state), (std::vector<size_t>{4, 1, 5}));
  }
}

// Shares of 1/3 round to 0, shares of 2/3 to 1: what is left, 1 or -1, goes to a random tensor.
TEST(RewireDsr, ARandomTensorGetsWhatRoundingLeaves) {
  for (const size_t dropped : {1, 2}) {
    RewireState before{{100, 100, 100}, {Filled(10), Filled(10), Filled(10)}};
    before.tensors[0] =
        WithSmall(Filled(10 + static_cast<int64_t>(dropped)), static_cast<int64_t>(dropped));
    std::set<std::vector<size_t>> seen;
    for (int update = 0; update < 30; ++update) {
      const auto results = Rewire(before, Dsr(0), update);
      const auto grown = GrownIn(before, results[0].state);
      EXPECT_EQ(grown[0] + grown[1] + grown[2], dropped);
      EXPECT_LE(*std::max_element(grown.begin(), grown.end()), 1U);
      EXPECT_EQ(GrownIn(before, results[1].state), grown);
      seen.insert(grown);
    }
    EXPECT_EQ(seen.size(), 3U);
  }
}

// Shares of 1.5, 1.5, 0.5 and 0.5 round to 2, 2, 1 and 1: two too many, which the last tensors
// cannot give back alone.
TEST(RewireDsr, NoShareBecomesNegative) {
  const RewireState before{{100, 100, 100, 100},
                           {WithSmall(Filled(34), 4), Filled(30), Filled(10), Filled(10)}};
  std::set<std::vector<size_t>> seen;
  for (int update = 0; update < 40; ++update) {
    const auto results = Rewire(before, Dsr(0), update);
    seen.insert(GrownIn(before, results[0].state));
    EXPECT_EQ(GrownIn(before, results[1].state), GrownIn(before, results[0].state));
  }
  EXPECT_EQ(seen, (std::set<std::vector<size_t>>{
                      {0, 2, 1, 1}, {2, 0, 1, 1}, {2, 2, 0, 0}, {1, 2, 1, 0}}));
}

TEST(RewireDsr, WhatAFullTensorCannotTakeIsSharedOutAgain) {
  const RewireState before{{50, 42, 100, 100},
                           {Filled(50), Filled(40), WithSmall(Filled(40), 30), Filled(20)}};
  for (const RewireResult& result : Rewire(before, Dsr(30))) {
    // Kept: 40, 10, 20 with room: shares 17.1, 4.3, 8.6. The first takes 2, then 15 are left for
    // the others: 5 and 10.
    EXPECT_EQ(GrownIn(before, result.state), (std::vector<size_t>{0, 2, 4 + 5, 9 + 10}));
  }
}

// 12 are below the threshold, 5 positions are free: the 7 largest of the 12 stay.
TEST(RewireDsr, KeepsTheLargestIfThereIsNoRoom) {
  RewireState before{{22, 33}, {Filled(20), Filled(30)}};
  for (int64_t i = 0; i < 6; ++i) {
    before.tensors[0][i].weight = 0.1F * static_cast<float>(i);
    before.tensors[1][i].weight = -0.1F * static_cast<float>(i);
  }
  for (const RewireResult& result : Rewire(before, Dsr(12))) {
    EXPECT_EQ(result.moved, 5);
    // 0, 0, 0.1, 0.1 and, of two of 0.2, the one with the higher position.
    EXPECT_EQ(ChangeOf(before.tensors[0], result.state.tensors[0]).dropped,
              (std::vector<int64_t>{0, 1}));
    EXPECT_EQ(ChangeOf(before.tensors[1], result.state.tensors[1]).dropped,
              (std::vector<int64_t>{0, 1, 2}));
    EXPECT_EQ(GrownIn(before, result.state), (std::vector<size_t>{2, 3}));
    EXPECT_EQ(result.state.threshold, 1);  // by the 12
  }
}

TEST(RewireDsr, DenseTensorsStayAsTheyAre) {
  const RewireState before{{20, 30}, {WithSmall(Filled(20), 7), Filled(30)}};
  for (const RewireResult& result : Rewire(before, Dsr(7))) {
    EXPECT_EQ(result.moved, 0);
    EXPECT_EQ(result.state.tensors, before.tensors);
  }
}

TEST(RewireDsr, GrowsAtEachInactivePositionEquallyOften) {
  constexpr int kTimes = 1000;
  const RewireState before{{70, 330}, {WithSmall(Filled(20), 10), WithSmall(Filled(30), 20)}};
  std::vector<std::map<int64_t, int>> counts(2);
  for (int update = 0; update < kTimes; ++update) {
    const RewireState after = Rewire(before, Dsr(0), update)[0].state;
    for (size_t t = 0; t < 2; ++t) {
      for (int64_t element : ChangeOf(before.tensors[t], after.tensors[t]).grown) {
        ++counts[t][element];
      }
    }
  }
  const double room[] = {50, 300};
  for (size_t t = 0; t < 2; ++t) {  // 15 grow in each
    const double share = 15 / room[t];
    EXPECT_EQ(static_cast<double>(counts[t].size()), room[t]);
    for (const auto& [element, count] : counts[t]) {
      EXPECT_NEAR(count, kTimes * share, 5 * std::sqrt(kTimes * share * (1 - share))) << element;
    }
  }
}

TEST(RewireDsr, DrawsDependOnSeedAndUpdate) {
  const RewireState before{{700}, {WithSmall(Filled(60), 30)}};
  const auto grown = [&](int64_t seed, int update) {
    const auto results = Rewire(before, {{"seed", seed}}, update);
    return ChangeOf(before.tensors[0], results[0].state.tensors[0]).grown;
  };
  EXPECT_EQ(grown(1, 1), grown(1, 1));
  EXPECT_NE(grown(1, 1), grown(1, 2));
  EXPECT_NE(grown(1, 1), grown(2, 1));
}

TEST(RewireSet, EachTensorDropsItsSmallestAndGrowsAsMany) {
  RewireState before{{90, 300}, {Filled(10), Filled(30)}};
  for (auto& [element, numbers] : before.tensors[0])
    numbers.weight = static_cast<float>(10 - element);
  before.tensors[1][7].weight = 0;  // all others are equal: higher positions are dropped
  for (const RewireResult& result : Rewire(before, kSet)) {
    EXPECT_EQ(GrownIn(before, result.state), (std::vector<size_t>{3, 8}));  // 2.5 and 7.5
    EXPECT_EQ(result.moved, 11);
    EXPECT_EQ(result.state.threshold, before.threshold);
    EXPECT_EQ(ChangeOf(before.tensors[0], result.state.tensors[0]).dropped,
              (std::vector<int64_t>{7, 8, 9}));
    EXPECT_EQ(ChangeOf(before.tensors[1], result.state.tensors[1]).dropped,
              (std::vector<int64_t>{7, 23, 24, 25, 26, 27, 28, 29}));
  }
}

TEST(RewireSet, KeepsOneAndNeedsRoom) {
  const RewireState before{{90, 12, 5, 1}, {Filled(10), Filled(10), Filled(5), Filled(1)}};
  for (const RewireResult& result : Rewire(before, {{"method", int64_t{1}}, {"fraction", 1.0}})) {
    EXPECT_EQ(GrownIn(before, result.state), (std::vector<size_t>{9, 2, 0, 0}));
  }
}

TEST(Rewire, RefusesWrongCalls) {
  const OpCase good = CaseFor(DrawnState({300, 70}, {30, 20}, 0.5F, 1), Dsr(10));
  const auto error_with = [&](const std::string& name, const AttributeValue& value) {
    OpCase bad = good;
    bad.attributes.Set(name, value);
    return ShapeError(bad);
  };
  EXPECT_THAT(error_with("tensors", std::vector<int64_t>{}), HasSubstr("no tensors"));
  EXPECT_THAT(error_with("tensors", std::vector<int64_t>{300, 0}), HasSubstr("has 0 elements"));
  EXPECT_THAT(error_with("tensors", std::vector<int64_t>(3, int64_t{1} << 30)),
              HasSubstr("more than 2147483647 positions"));
  EXPECT_THAT(error_with("tensors", std::vector<int64_t>{300, 300}),
              HasSubstr("'pattern' has shape (28), expected (37)"));
  EXPECT_THAT(error_with("method", int64_t{2}), HasSubstr("method is 2"));
  EXPECT_THAT(error_with("fraction", 1.5), HasSubstr("fraction is 1.5"));
  EXPECT_THAT(error_with("quota", int64_t{-1}), HasSubstr("quota is -1"));
  const auto error_at = [&](size_t input, const Shape& shape) {
    OpCase bad = good;
    bad.inputs[input] = shape;
    return ShapeError(bad);
  };
  EXPECT_THAT(error_at(1, Shape{1}), HasSubstr("1 active weights, expected 2 to 370"));
  EXPECT_THAT(error_at(1, Shape{371}), HasSubstr("371 active weights"));
  EXPECT_THAT(error_at(1, Shape{5, 10}), HasSubstr("'weights'"));
  EXPECT_THAT(error_at(2, Shape{51}), HasSubstr("'momentum' has shape (51), expected (50)"));
  EXPECT_THAT(error_at(3, Shape{2}), HasSubstr("'threshold'"));
  EXPECT_THAT(error_at(4, Shape{2}), HasSubstr("'update'"));
}

TEST(RewireDeathTest, PatternsThatDoNotBelongToTheWeightsAbort) {
  const OpCase op_case = CaseFor(DrawnState({300}, {30}, 0.5F, 1), Dsr(10));
  std::vector<OpData> inputs(5);
  for (const double word : op_case.given_inputs.at(0)) {
    inputs[0].integers.push_back(static_cast<int>(word));
  }
  inputs[1].floats.assign(30, 0);
  inputs[2].floats.assign(30, 0);
  inputs[3].floats = {1};
  inputs[4].integers = {0};
  inputs[0].integers.back() = 31;
  EXPECT_DEATH(RunOp(op_case, inputs), "the pattern is one for 31 weights");
}

}  // namespace
}  // namespace thimble
