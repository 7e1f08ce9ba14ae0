// The planned arena of each built-in model, plain and at its smallest, pinned to the byte, so that
// no plan becomes larger unnoticed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/train/image_programs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

struct Budget {
  const char* model;
  int64_t batch;
  size_t arena_bytes;
};

// Two threads, default scratch and prefetch ring, training and evaluation on 50000 + 10000 images.
constexpr Budget kBudgets[] = {
    {"wrn-10-1", 1, 1410944},      //
    {"wrn-10-1", 10, 7007424},     //
    {"wrn-10-1", 100, 61651904},   //
    {"wrn-16-2", 1, 8536512},      //
    {"wrn-16-2", 10, 26481024},    //
    {"wrn-16-2", 100, 204075648},  //
    {"wrn-28-2", 1, 17862080},     //
    {"wrn-28-2", 10, 50860416},    //
    {"wrn-28-2", 100, 393798272},  //
};

// The figures of the README for wrn-28-2 with all techniques.
TEST(PlannedArenaTest, AWideResNetFitsIntoNineMegabytes) {
  TrainConfig config;
  config.threads = 2;
  config.microbatch = 10;
  config.recompute = "optimal";
  config.levers = {{"precision", "fp16"}, {"update-in-backward", "true"}};
  const auto arena_bytes = [&] {
    return MakeTrainingProgram(config, ImageSpec{}, {50000, 0, 10000}, BuiltinOps())
        .value()
        .program.arena_bytes;
  };
  EXPECT_EQ(arena_bytes(), 9'081'984U);
  config.levers["store"] = "optimizer=q8";
  EXPECT_EQ(arena_bytes(), 7'640'384U);
}

// All techniques at once: 1/85 of the plain plan.
TEST(PlannedArenaTest, ASparseWideResNetFitsIntoFiveMegabytes) {
  TrainConfig config;
  config.threads = 2;
  config.microbatch = 10;
  config.recompute = "optimal";
  config.levers = {{"precision", "fp16"}, {"update-in-backward", "true"}, {"sparsity", "0.8"}};
  const auto program =
      MakeTrainingProgram(config, ImageSpec{}, {50000, 0, 10000}, BuiltinOps()).value();
  EXPECT_EQ(program.program.arena_bytes, 4'605'248U);
}

// What lives from step to step: weights, gradients and momentum with everything they need.
size_t KeptBytes(TrainConfig config, const std::string& sparsity) {
  config.threads = 2;
  config.levers["sparsity"] = sparsity;
  const auto program =
      MakeTrainingProgram(config, ImageSpec{}, {50000, 0, 10000}, BuiltinOps()).value();
  size_t bytes = 0;
  for (const Resident& resident : program.program.residents.residents) {
    if (resident.category != Category::kData) bytes += resident.size_bytes;
  }
  return bytes;
}

// The most that sparse weights may take of what dense ones do, in fp32 with an array of gradients
// and in fp16 without one.
TEST(PlannedArenaTest, BytesFollowTheActiveWeights) {
  struct Share {
    const char* sparsity;
    double with_gradients;
    double in_backward;
  };
  TrainConfig with_gradients;
  with_gradients.microbatch = 10;
  TrainConfig in_backward;
  in_backward.levers = {{"precision", "fp16"}, {"update-in-backward", "true"}};
  const auto dense = static_cast<double>(KeptBytes(with_gradients, "0"));
  const auto dense_in_backward = static_cast<double>(KeptBytes(in_backward, "0"));
  for (const auto& [sparsity, share, share_in_backward] :
       {Share{"0.7", 0.33, 0.35}, Share{"0.8", 0.23, 0.25}, Share{"0.9", 0.13, 0.15}}) {
    const auto bytes = static_cast<double>(KeptBytes(with_gradients, sparsity));
    const auto bytes_in_backward = static_cast<double>(KeptBytes(in_backward, sparsity));
    EXPECT_LE(bytes / dense, share) << sparsity;
    EXPECT_LE(bytes_in_backward / dense_in_backward, share_in_backward) << sparsity;
  }
}

TEST(PlannedArenaTest, IsExactlyTheBudget) {
  for (const Budget& budget : kBudgets) {
    TrainConfig config;
    config.model = budget.model;
    config.batch = budget.batch;
    config.threads = 2;
    const auto program = MakeTrainingProgram(config, ImageSpec{}, {50000, 0, 10000}, BuiltinOps());
    ASSERT_TRUE(program.ok()) << program.error().message;
    const size_t arena_bytes = program->program.arena_bytes;
    EXPECT_EQ(arena_bytes, budget.arena_bytes)
        << budget.model << " at batch " << budget.batch << " now needs "
        << fmt::format("{:+}",
                       static_cast<int64_t>(arena_bytes) - static_cast<int64_t>(budget.arena_bytes))
        << " bytes. If that is what the change is for, put {\"" << budget.model << "\", "
        << budget.batch << ", " << arena_bytes << "} into kBudgets in " << __FILE__
        << " in the same commit and give both numbers in its message; if not, find the cause.";
  }
}

}  // namespace
}  // namespace thimble
