#include "thimble/train/planning/savings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

class SavingsTest : public testing::Test {
 protected:
  int64_t ArenaOf(const TrainConfig& config) const {
    return static_cast<int64_t>(
        MakeTrainingProgram(config, model_, counts_, BuiltinOps())->program.arena_bytes);
  }
  int64_t FlopsOf(const TrainConfig& config) const {
    const auto program = MakeTrainingProgram(config, model_, counts_, BuiltinOps());
    return StepCost(program->program, BuiltinOps()).step_flops;
  }
  PlanSizer Sizer() const { return PlanSizer(TaskOf(model_, counts_), BuiltinOps()); }
  Savings Find() const { return FindSavings(config_, Sizer()).value(); }

  TrainConfig config_ = TinyConfig();
  ImageCounts counts_;
  ImageClassifier model_ = FindModel("wrn-10-1", ImageSpec{}).value();
};

TEST_F(SavingsTest, AreTheArenasOfPlansWithAndWithout) {
  const Savings savings = Find();
  EXPECT_EQ(savings.asked_arena_bytes, ArenaOf(config_));
  TrainConfig bare = config_;
  bare.without = {"norm-relu", "conv-add", "order", "in-place", "placement"};
  EXPECT_EQ(savings.bare_arena_bytes, ArenaOf(bare));
  ASSERT_EQ(savings.always.size(), 5U);
  // Passes add no arithmetic; fused nodes have their own counts.
  for (size_t pass = 2; pass < 5; ++pass) {
    EXPECT_EQ(savings.always[pass].step_flops, FlopsOf(bare)) << savings.always[pass].name;
  }
  for (const TechniqueSaving& technique : savings.always) {
    TrainConfig alone = bare;
    alone.without.erase(technique.name);
    EXPECT_EQ(technique.arena_bytes, ArenaOf(alone)) << technique.name;
    TrainConfig others = config_;
    others.without = {technique.name};
    EXPECT_EQ(technique.without_arena_bytes, ArenaOf(others)) << technique.name;
    EXPECT_EQ(technique.exactness, "same-bits");
    EXPECT_EQ(technique.step_flops, FlopsOf(alone)) << technique.name;
  }
}

// Leaves two levers to be offered.
constexpr auto kMostLevers = {
    std::pair{"precision", "fp16"}, {"update-in-backward", "true"}, {"sparsity", "0.8"}};

TEST_F(SavingsTest, EachLeverIsOfferedOnce) {
  std::vector<std::string> names;
  for (const TechniqueSaving& offered : Find().offered) names.push_back(offered.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"--precision fp16", "--update-in-backward", "--sparsity 0.8",
                                      "--recompute blocks", "--scratch 64KiB"}));
}

TEST_F(SavingsTest, OffersComeOnTopOfThePlan) {
  for (const auto& [lever, value] : kMostLevers) config_.levers[lever] = value;
  const Savings savings = Find();
  ASSERT_EQ(savings.offered.size(), 2U);
  TrainConfig blocks = config_;
  blocks.recompute = "blocks";
  TrainConfig small_scratch = config_;
  small_scratch.scratch_bytes = 64 << 10;
  TrainConfig both = blocks;
  both.scratch_bytes = small_scratch.scratch_bytes;
  EXPECT_EQ(savings.offered[0].name, "--recompute blocks");
  EXPECT_EQ(savings.offered[0].arena_bytes, ArenaOf(blocks));
  EXPECT_EQ(savings.offered[0].without_arena_bytes, ArenaOf(small_scratch));
  EXPECT_GT(savings.offered[0].step_flops, savings.asked_step_flops);
  EXPECT_EQ(savings.offered[1].arena_bytes, ArenaOf(small_scratch));
  EXPECT_EQ(savings.offered[1].without_arena_bytes, ArenaOf(blocks));
  EXPECT_EQ(savings.together_arena_bytes, ArenaOf(both));
}

TEST_F(SavingsTest, TheSmallestArenaIsKnownForTheBatchAndItsParts) {
  config_.batch = 12;
  const int64_t plain_flops = Find().asked_step_flops;
  const auto arenas = FindSmallestArenas(config_, Sizer()).value();
  ASSERT_EQ(arenas.size(), 3U);
  for (const SmallestArena& smallest : arenas) {
    TrainConfig config = config_;
    config.microbatch = smallest.microbatch;
    config.recompute = "optimal";
    EXPECT_EQ(smallest.arena_bytes, ArenaOf(config)) << smallest.microbatch;
    EXPECT_GT(smallest.step_flops, plain_flops);
  }
  config_.batch = 1;
  EXPECT_EQ(FindSmallestArenas(config_, Sizer())->size(), 1U);
}

TEST_F(SavingsTest, ComeOnTopOfWhatWasAskedFor) {
  counts_ = {10, 0, 6};
  for (const auto& [lever, value] : kMostLevers) config_.levers[lever] = value;
  config_.without = {"order"};
  config_.conv = "winograd";
  config_.bn_group = 2;
  config_.budget_bytes = 1;
  const Savings savings = Find();
  EXPECT_EQ(savings.asked_arena_bytes, ArenaOf(config_));
  ASSERT_EQ(savings.offered.size(), 2U);
  TrainConfig blocks = config_;
  blocks.recompute = "blocks";
  EXPECT_EQ(savings.offered[0].name, "--recompute blocks");
  EXPECT_EQ(savings.offered[0].arena_bytes, ArenaOf(blocks));
  for (const TechniqueSaving& technique : savings.always) {
    TrainConfig others = config_;
    others.without.insert(technique.name);
    EXPECT_EQ(technique.without_arena_bytes, ArenaOf(others)) << technique.name;
  }
}

// Winograd convolutions reject the small scratch that is otherwise offered.
TEST_F(SavingsTest, OfferedScratchCanBePlannedWith) {
  EXPECT_EQ(Find().offered.back().name, "--scratch 64KiB");
  config_.conv = "winograd";
  config_.batch = 20;
  const Savings savings = Find();
  EXPECT_EQ(savings.offered.back().name, "--scratch 512KiB");
  config_.scratch_bytes = 512 << 10;
  EXPECT_EQ(savings.offered.back().arena_bytes, ArenaOf(config_));
  EXPECT_EQ(Find().offered.back().name, "--recompute blocks");
}

// The limit can be reached only with all passes.
TEST_F(SavingsTest, OfALimitForRecompute) {
  config_.recompute = "optimal";
  config_.recompute = fmt::format("optimal:{}", ArenaOf(config_));
  const Savings savings = Find();
  EXPECT_EQ(savings.asked_arena_bytes, ArenaOf(config_));
  EXPECT_GT(savings.bare_arena_bytes, savings.asked_arena_bytes);
  config_.batch = 8;  // out of reach
  EXPECT_FALSE(FindSavings(config_, Sizer()).ok());
}

TEST_F(SavingsTest, WhatIsThereIsNotOffered) {
  for (const auto& [lever, value] : kMostLevers) config_.levers[lever] = value;
  config_.recompute = "blocks";
  config_.scratch_bytes = 64 << 10;
  const Savings savings = Find();
  EXPECT_TRUE(savings.offered.empty());
  EXPECT_EQ(savings.together_arena_bytes, savings.asked_arena_bytes);
  config_.batch = 40;
  config_.microbatch = 10;
  EXPECT_TRUE(Find().offered.empty());
  const auto smallest = FindSmallestArenas(config_, Sizer()).value();
  ASSERT_EQ(smallest.size(), 2U);
  EXPECT_EQ(smallest[0].options, "--recompute optimal --microbatch 10");
  EXPECT_EQ(smallest[1].options, "--recompute optimal --microbatch 1");
}

TEST_F(SavingsTest, PartsAreOfferedForBatchesThatHaveThem) {
  config_.batch = 11;
  const Savings savings = Find();
  ASSERT_EQ(savings.offered.size(), 6U);
  const TechniqueSaving& parts = savings.offered[0];
  EXPECT_EQ(parts.name, "--microbatch 10");
  EXPECT_EQ(parts.exactness, "lossy: batch-norm statistics per 6 samples");
  EXPECT_GT(parts.step_flops, savings.asked_step_flops);
  TrainConfig with = config_;
  with.microbatch = 10;
  EXPECT_EQ(parts.arena_bytes, ArenaOf(with));
  for (const auto& [lever, value] : kMostLevers) with.levers[lever] = value;
  with.recompute = "blocks";
  with.scratch_bytes = 64 << 10;
  EXPECT_EQ(savings.together_arena_bytes, ArenaOf(with));
}

}  // namespace
}  // namespace thimble
