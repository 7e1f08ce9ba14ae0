#include "thimble/train/weights/program_tensors.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/train/tiny_run.h"

namespace thimble {
namespace {

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

}  // namespace
}  // namespace thimble
