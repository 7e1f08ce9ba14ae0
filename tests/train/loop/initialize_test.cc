#include "thimble/train/loop/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

std::span<float> Floats(const Executor& executor, const std::string& name) {
  const auto bytes = executor.ResidentBytes(name);
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

// Everything a run starts from.
std::vector<float> AllOf(const TinyRun& run) {
  std::vector<float> all;
  for (const InitRule& rule : run.program.inits) {
    const auto values = Floats(*run.executor, rule.name);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(Initialize, TheSeedDecides) {
  TrainConfig config = TinyConfig();
  const std::vector<float> first = AllOf(TinyRun(config));
  EXPECT_EQ(first, AllOf(TinyRun(config)));
  config.threads = 2;
  config.batch = 3;
  EXPECT_EQ(first, AllOf(TinyRun(config)));
  config.seed = 2;
  EXPECT_NE(first, AllOf(TinyRun(config)));
}

TEST(Initialize, EachRuleIsFollowed) {
  const TinyRun run;
  for (const InitRule& rule : run.program.inits) {
    const auto values = Floats(*run.executor, rule.name);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value)) << rule.name;
      if (rule.kind == InitRule::Kind::kConstant) {
        ASSERT_EQ(value, static_cast<float>(rule.scale));
      }
      if (rule.kind == InitRule::Kind::kUniform) {
        ASSERT_LE(std::abs(value), rule.scale);
      }
      sum += value;
      squares += double{value} * value;
    }
    const auto count = static_cast<double>(values.size());
    if (rule.kind != InitRule::Kind::kNormal) continue;
    // Five standard errors of the mean and of the variance of normal numbers.
    EXPECT_NEAR(sum / count / rule.scale, 0, 5 / std::sqrt(count)) << rule.name;
    EXPECT_NEAR(squares / count / (rule.scale * rule.scale), 1, 5 * std::sqrt(2 / count))
        << rule.name;
  }
}

TEST(Initialize, TensorsDifferFromEachOther) {
  const TinyRun run;
  std::set<float> firsts;
  size_t drawn = 0;
  for (const InitRule& rule : run.program.inits) {
    if (rule.kind == InitRule::Kind::kConstant) continue;
    firsts.insert(Floats(*run.executor, rule.name)[0]);
    ++drawn;
  }
  EXPECT_GT(drawn, 5U);
  EXPECT_EQ(firsts.size(), drawn);
}

TEST(Initialize, MomentumIsZero) {
  const TinyRun run;
  size_t states = 0;
  for (const Resident& resident : run.executor->program().residents.residents) {
    if (resident.category != Category::kOptimizer) continue;
    ++states;
    for (const float value : Floats(*run.executor, resident.name)) ASSERT_EQ(value, 0);
  }
  EXPECT_GT(states, 0U);
}

TEST(InitializeDeathTest, RuleForAnUnknownTensor) {
  const TinyRun run;
  EXPECT_DEATH(InitializeResidents(*run.executor, {{.name = "nobody"}}, 1), "no tensor 'nobody'");
}

TEST(Initialize, AccumulatorsAreZeroAndStayOutOfFiles) {
  TrainConfig config = TinyConfig();
  config.microbatch = 2;
  const TinyRun run(config);
  size_t accumulators = 0;
  for (const Resident& resident : run.program.program.residents.residents) {
    if (resident.category != Category::kGradients) continue;
    ++accumulators;
    for (const float value : Floats(*run.executor, resident.name)) ASSERT_EQ(value, 0);
  }
  EXPECT_GT(accumulators, 0U);
  const TinyRun plain;
  for (const TensorSet set : {TensorSet::kWeights, TensorSet::kCheckpoint}) {
    const auto tensors = PersistentTensors(*run.executor, set);
    std::set<std::string> names;
    for (const StoredTensor& tensor : tensors) names.insert(tensor.name);
    for (const StoredTensor& tensor : PersistentTensors(*plain.executor, set)) {
      EXPECT_EQ(names.erase(tensor.name), 1U) << tensor.name;
    }
    EXPECT_TRUE(names.empty()) << *names.begin();
  }
}

}  // namespace
}  // namespace thimble
