#include "thimble/train/planning/training_program.h"

#include <gtest/gtest.h>

#include "tests/support/test_paths.h"
#include "tests/train/image_programs.h"
#include "tests/train/tiny_run.h"
#include "thimble/data/batches.h"
#include "thimble/grad/sgd.h"
#include "thimble/train/options/options.h"
#include "thimble/train/task/find_task.h"

namespace thimble {
namespace {

using Names = std::vector<std::string>;

Names PlanNames(int64_t batch, const ImageCounts& counts) {
  TrainConfig config = TinyConfig();
  config.batch = batch;
  return MakeTrainingProgram(config, ImageSpec{}, counts, BuiltinOps())->program.names;
}

std::string Refusal(TrainConfig config) {
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  if (program.ok()) return "was accepted";
  EXPECT_EQ(program.error().kind, ErrorKind::kBadInput);
  return program.error().message;
}

TEST(TrainingProgram, PlansEveryBatchSizeThatOccurs) {
  EXPECT_EQ(PlanNames(4, {10, 0, 6}), (Names{"train 4", "train 2", "evaluate 4", "evaluate 2"}));
  EXPECT_EQ(PlanNames(4, {8, 0, 8}), (Names{"train 4", "evaluate 4"}));
  EXPECT_EQ(PlanNames(4, {8, 3, 5}), (Names{"train 4", "evaluate 4", "evaluate 3", "evaluate 1"}));
  EXPECT_EQ(PlanNames(1, {3, 0, 2}), (Names{"train 1", "evaluate 1"}));
}

TEST(TrainingProgram, ABatchIsNeverLargerThanTheTrainingSet) {
  EXPECT_EQ(PlanNames(100, {3, 0, 7}), (Names{"train 3", "evaluate 3", "evaluate 1"}));
  EXPECT_EQ(PlanNames(100, {3, 0, 2}), (Names{"train 3", "evaluate 2"}));
}

TEST(TrainingProgram, WithoutCountsFullBatchesOnly) {
  EXPECT_EQ(PlanNames(4, {}), (Names{"train 4", "evaluate 4"}));
}

TEST(TrainingProgram, FindsItsPlans) {
  const TinyRun run;
  EXPECT_EQ(run.program.program.names[run.program.TrainPlan({2})], "train 2");
  EXPECT_EQ(run.program.program.names[run.program.EvaluatePlan({4})], "evaluate 4");
  EXPECT_EQ(&run.program.main_plan(), &run.program.program.plans[run.program.TrainPlan({4})]);
}

TEST(TrainingProgramDeathTest, AskedForAPlanThatWasNotMade) {
  const TinyRun run;
  EXPECT_DEATH(run.program.TrainPlan({3}), "no plan 'train 3'");
}

TEST(TrainingProgram, TheRingIsCountedAndFitsTheBatch) {
  TrainConfig config = TinyConfig();
  config.batch = 100;
  config.prefetch = 3;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  const ResidentLayout& residents = program->program.residents;
  ASSERT_NE(residents.Find(RingName(2, kImagesField)), nullptr);
  EXPECT_EQ(residents.Find(RingName(2, kImagesField))->size_bytes, 10U * 3072);
  EXPECT_EQ(residents.Find(RingName(0, kLabelsField))->size_bytes, 10U * 4);
  EXPECT_EQ(residents.Find(RingName(2, kImagesField))->category, Category::kData);
  EXPECT_EQ(residents.Find(RingName(3, kImagesField)), nullptr);
}

TEST(TrainingProgram, GhostBatchNormIsATechniqueOfTraining) {
  TrainConfig config = TinyConfig();
  config.bn_group = 3;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {9, 0, 6}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  const auto done = [&](size_t plan) {
    const TechniqueRecord& first = program->program.plans[plan].graph_techniques.front();
    return first.exactness + ": " + first.done;
  };
  // Four samples are cut into two and two.
  EXPECT_EQ(done(program->TrainPlan({4})), "lossy: batch-norm statistics per 2 samples");
  EXPECT_EQ(done(program->TrainPlan({1})), "lossy: batch-norm statistics per 1 sample");
  EXPECT_EQ(done(program->EvaluatePlan({4})), "same-bits: norms fused with the following ReLU: 7");
}

TEST(TrainingProgram, GhostBatchNormNeedsANorm) {
  TrainConfig config = TinyConfig();
  config.bn_group = 2;
  const ImageClassifier flat{"flat", ImageSpec{}, [](NetworkBuilder& net, ValueId x) {
                               return net.Linear("fc", net.GlobalAveragePool(x), 10);
                             }};
  const auto program = MakeTrainingProgram(config, flat, {10, 0, 6}, BuiltinOps());
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(program->main_plan().graph_techniques.empty());
}

TEST(TrainingProgram, PlainIsWithoutGhostBatchNorm) {
  TrainConfig config = TinyConfig();
  config.bn_group = 1;
  EXPECT_EQ(PlainConfig(config).bn_group, 0);
}

TEST(TrainingProgram, PlainIsWithAllPasses) {
  TrainConfig config = TinyConfig();
  const auto with = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  config.without = {"in-place", "order", "placement"};
  const auto without = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  EXPECT_GT(without->program.arena_bytes, with->program.arena_bytes);
  EXPECT_EQ(
      *PlainArenaBytes(config, ImageTaskOf(config, ImageSpec{}, {10, 0, 6}).value(), BuiltinOps()),
      static_cast<int64_t>(with->program.arena_bytes));
}

TEST(TrainingProgram, EvaluationAloneNeedsLess) {
  const TrainConfig config = TinyConfig();
  const auto training = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  const auto evaluation = MakeEvaluationProgram(
      config, ImageTaskOf(config, ImageSpec{}, {10, 0, 6}).value(), DataPart::kTest, BuiltinOps());
  ASSERT_TRUE(evaluation.ok());
  EXPECT_EQ(evaluation->program.names, (Names{"evaluate 4", "evaluate 2"}));
  EXPECT_LT(evaluation->program.arena_bytes, training->program.arena_bytes);
  EXPECT_EQ(evaluation->program.residents.Find(RingName(0, kImagesField)), nullptr);
  for (const Resident& resident : evaluation->program.residents.residents) {
    EXPECT_EQ(resident.category, Category::kModel) << resident.name;
  }
}

TEST(TrainingProgram, WrongModelsAndPasses) {
  TrainConfig config = TinyConfig();
  config.model = "resnet-50";
  EXPECT_NE(Refusal(config).find("resnet-50"), std::string::npos);
  config.model = "wrn-11-1";
  EXPECT_NE(Refusal(config).find("depth 11 is impossible"), std::string::npos);
  config = TinyConfig();
  config.without = {"placment"};
  EXPECT_NE(Refusal(config).find("'placment'"), std::string::npos);
}

TEST(ChosenAugmentation, AutoIsTheDataSetsUsualOne) {
  TrainConfig config;
  for (const Augmentation usual : {Augmentation::kNone, Augmentation::kCropFlip}) {
    config.augment = "auto";
    EXPECT_EQ(ChosenAugmentation(config, usual), usual);
    config.augment = "none";
    EXPECT_EQ(ChosenAugmentation(config, usual), Augmentation::kNone);
    config.augment = "crop-flip";
    EXPECT_EQ(ChosenAugmentation(config, usual), Augmentation::kCropFlip);
  }
}

TEST(MakeTrainingProgramAugmented, OnlyTrainingPlansDraw) {
  TrainConfig config = TinyConfig();
  config.augment = "crop-flip";
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(ImagesOf(*program).augmentation(), Augmentation::kCropFlip);
  const Program& planned = program->program;
  for (size_t i = 0; i < planned.plans.size(); ++i) {
    const bool training = planned.names[i].starts_with("train");
    EXPECT_EQ(planned.plans[i].graph.Find(kSamplesInput).valid(), training) << planned.names[i];
  }
}

TEST(MakeTrainingProgramWithDropout, OnlyTrainingPlansDraw) {
  TrainConfig config = TinyConfig();
  config.model = "wrn-10-1:dropout=0.3";
  config.seed = 77;
  const auto program = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_EQ(ImagesOf(*program).augmentation(), Augmentation::kNone);
  const Program& planned = program->program;
  for (size_t i = 0; i < planned.plans.size(); ++i) {
    const bool training = planned.names[i].starts_with("train");
    EXPECT_EQ(planned.plans[i].graph.Find(kSamplesInput).valid(), training) << planned.names[i];
    for (const Node& node : planned.plans[i].graph.nodes) {
      if (node.op != "dropout") continue;
      EXPECT_EQ(node.attributes.Int("seed"), 77);
    }
  }
}

// The built-in network as a file.
std::string WideResNetFile() { return ExamplesFolder() + "/models/wrn-28-2.toml"; }

Result<std::shared_ptr<const ImageTask>> DescribeImages(const TrainConfig& config) {
  return DescribeImageTask(
      config, [&](const ImageSpec& images) { return FindModel(config.model, images); });
}

TEST(DescribeTask, AModelFileSaysWhatItIsFor) {
  TrainConfig config;
  config.model = WideResNetFile();
  const auto task = DescribeImages(config);
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ((*task)->classifier().images.classes, 10);
  EXPECT_EQ((*task)->counts().train, 0);
  EXPECT_EQ((*task)->counts().test, 0);
  config.model = "no/such.toml";
  EXPECT_FALSE(DescribeTask(config).ok());
}

TEST(DescribeTask, GivenDataComesFirst) {
  TrainConfig config;
  config.model = WideResNetFile();
  config.data = "cifar100";
  config.data_given = true;
  config.validation = 5000;
  EXPECT_THAT(DescribeTask(config).error().message, testing::HasSubstr("in 100 classes"));
  config.data = "cifar10";
  const auto task = DescribeImages(config);
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ((*task)->counts().train, 45000);
}

TEST(DescribeTask, BuiltInNetworksHaveTheDefault) {
  TrainConfig config;
  const auto task = DescribeImages(config);
  ASSERT_TRUE(task.ok()) << task.error().message;
  EXPECT_EQ((*task)->counts().train, DescribeImageData(config.data, {})->counts.train);
  EXPECT_GT((*task)->counts().train, 0);
}

TEST(TrainingProgram, TheWideResNetAsAFileHasTheSamePlans) {
  TrainConfig config = TinyConfig();
  config.model = "wrn-28-2";
  const auto built_in = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  ASSERT_TRUE(built_in.ok()) << built_in.error().message;
  config.model = WideResNetFile();
  const auto from_file = MakeTrainingProgram(config, ImageSpec{}, {10, 0, 6}, BuiltinOps());
  ASSERT_TRUE(from_file.ok()) << from_file.error().message;
  EXPECT_EQ(built_in->program.names, from_file->program.names);
  EXPECT_EQ(built_in->program.residents, from_file->program.residents);
  EXPECT_EQ(built_in->program.arena_bytes, from_file->program.arena_bytes);
  ASSERT_EQ(built_in->program.plans.size(), from_file->program.plans.size());
  for (size_t i = 0; i < built_in->program.plans.size(); ++i) {
    EXPECT_TRUE(built_in->program.plans[i] == from_file->program.plans[i])
        << built_in->program.names[i];
  }
}

// So many images to train on.
TaskPtr Images(int64_t count) {
  return ImageTaskOf(TinyConfig(), ImageSpec{}, {.train = count}).value();
}

TEST(CutToData, ABatchHasAtMostAllTrainingImages) {
  TrainConfig config = TinyConfig();
  config.batch = 50;
  config.microbatch = 45;
  config.bn_group = 44;
  EXPECT_EQ(CutToData(config, *Images(0)).batch, 50);
  EXPECT_EQ(CutToData(config, *Images(50)).microbatch, 45);
  EXPECT_EQ(CutMessage(config, *Images(50)), "");
  const TrainConfig cut = CutToData(config, *Images(40));
  EXPECT_EQ(cut.batch, 40);
  EXPECT_EQ(cut.microbatch, 0);
  EXPECT_EQ(cut.bn_group, 40);
  EXPECT_TRUE(CheckConfig(cut).ok());
  EXPECT_EQ(CutMessage(config, *Images(40)),
            "--batch 50: there are only 40 training images, so the batch is 40");
  config.microbatch = 10;
  EXPECT_EQ(CutToData(config, *Images(40)).microbatch, 10);
}

TEST(IsPlain, WithoutATechnique) {
  TrainConfig config = TinyConfig();
  EXPECT_TRUE(IsPlain(config));
  config.microbatch = config.batch;
  config.budget_bytes = 1;
  EXPECT_TRUE(IsPlain(config));
  config.conv = "winograd";
  EXPECT_FALSE(IsPlain(config));
  EXPECT_TRUE(IsPlain(PlainConfig(config)));
}

TEST(CheckBudget, ToTheByte) {
  const TinyRun run;
  const auto needed = static_cast<int64_t>(run.program.program.arena_bytes);
  EXPECT_TRUE(CheckBudget(run.program.program, 0).ok());
  EXPECT_TRUE(CheckBudget(run.program.program, needed).ok());
  const Result<void> short_of_one = CheckBudget(run.program.program, needed - 1);
  ASSERT_FALSE(short_of_one.ok());
  EXPECT_EQ(short_of_one.error().kind, ErrorKind::kDoesNotFit);
  const std::string& message = short_of_one.error().message;
  EXPECT_NE(message.find(std::to_string(needed) + " bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("exceeded by 1 B;"), std::string::npos) << message;
  EXPECT_NE(message.find("largest at the peak: "), std::string::npos) << message;
  const Result<void> advised = CheckBudget(run.program.program, 1, "try less");
  EXPECT_TRUE(advised.error().message.ends_with("; try less")) << advised.error().message;
}

class ProgramInParts : public testing::Test {
 protected:
  static TrainingProgram Make(int64_t batch, int64_t microbatch, const ImageCounts& counts) {
    TrainConfig config = TinyConfig();
    config.batch = batch;
    config.microbatch = microbatch;
    return MakeTrainingProgram(config, ImageSpec{}, counts, BuiltinOps()).value();
  }
  static Names NamesOf(int64_t batch, int64_t microbatch, const ImageCounts& counts) {
    return Make(batch, microbatch, counts).program.names;
  }
};

TEST_F(ProgramInParts, PlansEveryPartAndUpdateThatOccurs) {
  EXPECT_EQ(NamesOf(7, 3, {17, 0, 5}),
            (Names{"train 3 of 7", "train 2 of 7", "update 7", "train 3 of 3", "update 3",
                   "evaluate 3", "evaluate 2"}));
  EXPECT_EQ(NamesOf(8, 2, {16, 0, 1}), (Names{"train 2 of 8", "update 8", "evaluate 1"}));
  EXPECT_EQ(NamesOf(8, 2, {}), (Names{"train 2 of 8", "update 8", "evaluate 2"}));
}

TEST_F(ProgramInParts, OnePartIsThePlainProgram) {
  const Names plain = {"train 4", "evaluate 4"};
  EXPECT_EQ(NamesOf(4, 4, {8, 0, 4}), plain);
  EXPECT_EQ(NamesOf(4, 0, {8, 0, 4}), plain);
  // The batch is as small as the training set, and with it the part.
  EXPECT_EQ(NamesOf(100, 10, {4, 0, 4}), plain);
  EXPECT_FALSE(Make(4, 4, {}).in_parts());
  EXPECT_EQ(Make(4, 4, {}).runs_per_step(), 1);
}

TEST_F(ProgramInParts, KnowsTheRunsOfAStep) {
  const TrainingProgram program = Make(7, 3, {17, 0, 5});
  EXPECT_TRUE(program.in_parts());
  EXPECT_EQ(program.part, 3);
  EXPECT_EQ(program.runs_per_step(), 4);
  EXPECT_EQ(program.program.runs_per_step, (std::vector<int64_t>{1, 2, 1, 0, 0, 0, 0}));
  EXPECT_EQ(program.PartPlan({2}, {7}), 1U);
  EXPECT_EQ(program.UpdatePlan({3}), 4U);
  EXPECT_EQ(&program.main_plan(), &program.program.plans[program.PartPlan({3}, {7})]);
}

TEST_F(ProgramInParts, TheRingHoldsAPart) {
  const TrainingProgram program = Make(7, 3, {17, 0, 5});
  EXPECT_EQ(program.program.residents.Find(RingName(0, kImagesField))->size_bytes, 3U * 3072);
  EXPECT_EQ(program.program.residents.Find(RingName(0, kLabelsField))->size_bytes, 3U * 4);
  // A last batch may have the largest part: 12 in parts of at most 8 are 6 and 6, 7 are one.
  EXPECT_EQ(Make(12, 8, {19, 0, 5}).part, 7);
}

TEST_F(ProgramInParts, NeedsLessAndSaysWhatItIs) {
  const TrainingProgram plain = Make(8, 0, {});
  const TrainingProgram parts = Make(8, 2, {});
  const auto plain_bytes = static_cast<int64_t>(plain.program.arena_bytes);
  const auto bytes = static_cast<int64_t>(parts.program.arena_bytes);
  EXPECT_LT(bytes, plain_bytes / 2);
  const ProgramRecord record = RecordOf(parts, BuiltinOps(), plain_bytes);
  const TechniqueRecord& technique = record.plans[0].techniques.front();
  EXPECT_EQ(technique.name, "microbatch");
  EXPECT_EQ(technique.exactness, "lossy: batch-norm statistics per 2 samples");
  EXPECT_EQ(technique.done, "4 parts of 2 samples");
  EXPECT_EQ(technique.saved_bytes, plain_bytes - bytes);
  EXPECT_EQ(RecordOf(parts, BuiltinOps(), 0).plans[0].techniques.front().saved_bytes, 0);
  for (size_t plan = 1; plan < record.plans.size(); ++plan) {
    for (const TechniqueRecord& other : record.plans[plan].techniques) {
      EXPECT_NE(other.name, "microbatch") << record.plans[plan].name;
    }
  }
  EXPECT_NE(RecordOf(plain, BuiltinOps(), plain_bytes).plans[0].techniques.front().name,
            "microbatch");
}

TEST_F(ProgramInParts, AStepIsAllItsRuns) {
  const TrainingProgram plain = Make(8, 0, {});
  const TrainingProgram parts = Make(8, 2, {10, 0, 3});
  const GraphCost expected = StepCost(plain.program, BuiltinOps());
  const GraphCost cost = StepCost(parts.program, BuiltinOps());
  EXPECT_EQ(cost.forward_flops, expected.forward_flops);
  EXPECT_GT(cost.step_flops, expected.step_flops);  // the sums
  EXPECT_LT(cost.step_flops, expected.step_flops + expected.step_flops / 50);
}

TEST_F(ProgramInParts, PlainIsTheWholeBatch) {
  TrainConfig config = TinyConfig();
  config.microbatch = 1;
  EXPECT_EQ(PlainConfig(config).microbatch, 0);
}

TEST_F(ProgramInParts, EveryWeightsMomentumBelongsToItsLayer) {
  const ProgramRecord record = RecordOf(Make(8, 2, {}), BuiltinOps(), 0);
  size_t held = 0;
  for (const Holding& holding : record.plans[0].holdings) {
    if (!holding.name.starts_with(kMomentumPrefix)) continue;
    ++held;
    EXPECT_NE(holding.layer, "") << holding.name;
    EXPECT_NE(holding.shape, "") << holding.name;
  }
  EXPECT_EQ(held, 25U);
}

}  // namespace
}  // namespace thimble
