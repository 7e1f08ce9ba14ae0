#include "thimble/train/savings.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

class SavingsTest : public testing::Test {
 protected:
  int64_t ArenaOf(const TrainConfig& config) const {
    return static_cast<int64_t>(
        MakeTrainingProgram(config, model_, ImageCounts{}, BuiltinOps())->program.arena_bytes);
  }
  Savings Find() const { return FindSavings(config_, model_, BuiltinOps()).value(); }

  TrainConfig config_ = TinyConfig();
  ImageClassifier model_ = FindModel("wrn-10-1", ImageSpec{}).value();
};

TEST_F(SavingsTest, AreTheArenasOfPlansWithAndWithout) {
  const Savings savings = Find();
  EXPECT_EQ(savings.plain_arena_bytes, ArenaOf(config_));
  TrainConfig bare = config_;
  bare.without = {"order", "in-place", "placement"};
  EXPECT_EQ(savings.bare_arena_bytes, ArenaOf(bare));
  ASSERT_EQ(savings.always.size(), 3U);
  for (const TechniqueSaving& technique : savings.always) {
    TrainConfig alone = bare;
    alone.without.erase(technique.name);
    EXPECT_EQ(technique.arena_bytes, ArenaOf(alone)) << technique.name;
    TrainConfig others = config_;
    others.without = {technique.name};
    EXPECT_EQ(technique.without_arena_bytes, ArenaOf(others)) << technique.name;
    EXPECT_EQ(technique.exactness, "same-bits");
    EXPECT_EQ(technique.step_flops, savings.plain_step_flops);
  }
}

TEST_F(SavingsTest, OffersComeOnTopOfThePlainPlan) {
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
  EXPECT_GT(savings.offered[0].step_flops, savings.plain_step_flops);
  EXPECT_EQ(savings.offered[1].arena_bytes, ArenaOf(small_scratch));
  EXPECT_EQ(savings.offered[1].without_arena_bytes, ArenaOf(blocks));
  EXPECT_EQ(savings.together_arena_bytes, ArenaOf(both));
}

TEST_F(SavingsTest, TheSmallestArenaIsKnownForTheBatchAndItsParts) {
  config_.batch = 12;
  const int64_t plain_flops = Find().plain_step_flops;
  const auto arenas = FindSmallestArenas(config_, model_, BuiltinOps()).value();
  ASSERT_EQ(arenas.size(), 3U);
  for (const SmallestArena& smallest : arenas) {
    TrainConfig config = config_;
    config.microbatch = smallest.microbatch;
    config.recompute = "optimal";
    EXPECT_EQ(smallest.arena_bytes, ArenaOf(config)) << smallest.microbatch;
    EXPECT_GT(smallest.step_flops, plain_flops);
  }
  config_.batch = 1;
  EXPECT_EQ(FindSmallestArenas(config_, model_, BuiltinOps())->size(), 1U);
}

TEST_F(SavingsTest, WhatWasAskedForPlaysNoPart) {
  const Savings plain = Find();
  config_.without = {"placement"};
  config_.conv = "winograd";
  config_.recompute = "blocks";
  config_.scratch_bytes = 256 << 10;
  config_.budget_bytes = 1;
  const Savings savings = Find();
  EXPECT_EQ(savings.plain_arena_bytes, plain.plain_arena_bytes);
  EXPECT_EQ(savings.bare_arena_bytes, plain.bare_arena_bytes);
}

TEST_F(SavingsTest, TheLargestBatchFitsAndTheNextDoesNot) {
  config_.batch = 64;
  const auto arena_of_batch = [&](int64_t batch) {
    TrainConfig config = config_;
    config.batch = batch;
    return ArenaOf(config);
  };
  config_.budget_bytes = arena_of_batch(17) + 100;
  EXPECT_EQ(*LargestBatchWithin(config_, model_, BuiltinOps()), 17);
  config_.budget_bytes = arena_of_batch(64);
  EXPECT_EQ(*LargestBatchWithin(config_, model_, BuiltinOps()), 64);
  config_.budget_bytes = arena_of_batch(1) - 1;
  EXPECT_EQ(*LargestBatchWithin(config_, model_, BuiltinOps()), 0);
}

TEST_F(SavingsTest, PartsAreOfferedForBatchesThatHaveThem) {
  config_.batch = 11;
  const Savings savings = Find();
  ASSERT_EQ(savings.offered.size(), 3U);
  const TechniqueSaving& parts = savings.offered[0];
  EXPECT_EQ(parts.name, "--microbatch 10");
  EXPECT_EQ(parts.exactness, "lossy: batch-norm statistics per 10 samples");
  EXPECT_GT(parts.step_flops, savings.plain_step_flops);
  TrainConfig with = config_;
  with.microbatch = 10;
  EXPECT_EQ(parts.arena_bytes, ArenaOf(with));
  with.recompute = "blocks";
  with.scratch_bytes = 64 << 10;
  EXPECT_EQ(savings.together_arena_bytes, ArenaOf(with));
}

}  // namespace
}  // namespace thimble
