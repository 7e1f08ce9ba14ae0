#include "thimble/train/loop/initialize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"

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

TEST(PersistentTensors, OnceEachWithOrWithoutState) {
  const TinyRun run;
  const auto weights = PersistentTensors(*run.executor, TensorSet::kWeights);
  const auto all = PersistentTensors(*run.executor, TensorSet::kCheckpoint);
  std::set<std::string> names;
  for (const StoredTensor& tensor : all) {
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
    EXPECT_EQ(tensor.layout == FileLayout::kOhwiToOihw, tensor.view.shape.rank() == 4);
  }
  EXPECT_EQ(weights.size(), run.program.inits.size());
  EXPECT_GT(all.size(), weights.size());
  EXPECT_TRUE(names.contains("fc.weight"));
  EXPECT_TRUE(names.contains("bn1.running_mean"));
}

// A parameter with the shape of a filter need not be one.
TEST(PersistentTensors, OnlyFiltersOfConvolutionsHaveTheLayoutOfPyTorch) {
  for (const double momentum : {0.0, 0.9}) {
    TrainConfig config = TinyConfig();
    config.data =
        "shapes:8,4";  // all batches have one size, which is in the shape of the parameter
    config.optimizer.momentum = momentum;
    const ImageData data = TinyData(config);
    const ImageClassifier model = {
        "offset", SpecOf(data), [](NetworkBuilder& net, ValueId x) {
          x = net.Conv("conv", x, {.out_channels = 5, .kernel = 3, .padding = 1});
          x = net.Add(x, net.Parameter("offset", net.shape(x), InitRule::Kind::kNormal, 0.1));
          x = net.Conv("conv2", net.Relu(x), {.out_channels = 4, .kernel = 1});
          return net.Linear("fc", net.GlobalAveragePool(x), 10);
        }};
    const TrainingProgram program =
        MakeTrainingProgram(config, model, CountsOf(data), BuiltinOps()).value();
    const auto executor = Executor::Create(program.program, BuiltinOps()).value();
    size_t filters = 0;
    bool found_offset = false;
    for (const StoredTensor& tensor : PersistentTensors(*executor, TensorSet::kCheckpoint)) {
      const bool is_filter = tensor.name.find("conv") != std::string::npos;
      EXPECT_EQ(tensor.layout == FileLayout::kOhwiToOihw, is_filter) << tensor.name;
      filters += is_filter ? 1 : 0;
      found_offset |= tensor.name == "offset" && tensor.view.shape.rank() == 4;
    }
    EXPECT_EQ(filters, momentum == 0 ? 2U : 4U);
    EXPECT_TRUE(found_offset);
  }
}

// Also where the update is a plan of its own, and where only evaluation is planned.
TEST(PersistentTensors, TheLayoutIsTheSameInEveryProgram) {
  TrainConfig config = TinyConfig();
  config.microbatch = 2;
  const TinyRun parts(config);
  for (const StoredTensor& tensor : PersistentTensors(*parts.executor, TensorSet::kCheckpoint)) {
    EXPECT_EQ(tensor.layout == FileLayout::kOhwiToOihw, tensor.view.shape.rank() == 4)
        << tensor.name;
  }
  const TinyRun run;
  const TrainingProgram program =
      MakeEvaluationProgram(run.config, run.program.task, DataPart::kTest, BuiltinOps()).value();
  const auto executor = Executor::Create(program.program, BuiltinOps()).value();
  for (const StoredTensor& tensor : PersistentTensors(*executor, TensorSet::kWeights)) {
    EXPECT_EQ(tensor.layout == FileLayout::kOhwiToOihw, tensor.view.shape.rank() == 4)
        << tensor.name;
  }
}

TEST(PersistentTensors, NoStateWithoutMomentum) {
  TrainConfig config = TinyConfig();
  config.optimizer.momentum = 0;
  const TinyRun run(config);
  EXPECT_EQ(PersistentTensors(*run.executor, TensorSet::kCheckpoint).size(),
            PersistentTensors(*run.executor, TensorSet::kWeights).size());
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
