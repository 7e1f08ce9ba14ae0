#include "thimble/train/loop/evaluate_run.h"

#include "tests/train/file_fixture.h"
#include "tests/train/tiny_run.h"
#include "thimble/base/json.h"
#include "thimble/data/batches.h"
#include "thimble/train/weights/program_tensors.h"

namespace thimble {
namespace {

class EvaluateRunTest : public FileFixture {
 protected:
  // Saves the random weights a run starts from.
  void SaveStart(const TinyRun& run) {
    ASSERT_TRUE(SaveTensors(path_, PersistentTensors(*run.executor, TensorSet::kWeights), {}).ok());
  }
  Error Refusal(const TrainConfig& config, const std::string& part = "test") {
    const auto result = EvaluateWeights(config, path_, part, BuiltinOps());
    return result.ok() ? Failed("was accepted") : result.error();
  }

  TrainConfig config_ = TinyConfig();
};

TEST_F(EvaluateRunTest, AgreesWithTheRunThatSavedTheWeights) {
  const TinyRun run;
  SaveStart(run);
  const auto expected = Evaluate(*run.executor, run.program, EvalBatches(*run.data.test, 4));
  const auto actual = EvaluateWeights(config_, path_, "test", BuiltinOps());
  ASSERT_TRUE(actual.ok()) << actual.error().message;
  EXPECT_EQ(actual->evaluation.loss, expected->loss);
  EXPECT_EQ(actual->evaluation.accuracy, expected->accuracy);
  EXPECT_EQ(actual->evaluation.count, 6);
  const auto json = ParseJson(actual->json).value();
  EXPECT_EQ(json["accuracy"], expected->accuracy);
  EXPECT_EQ(json["loss"], expected->loss);
  EXPECT_EQ(json["model"], "wrn-10-1");
  EXPECT_EQ(json["part"], "test");
  EXPECT_EQ(json["arena_bytes"], actual->arena_bytes);
}

TEST_F(EvaluateRunTest, OtherPartsAndBatches) {
  SaveStart(TinyRun());
  const auto train = EvaluateWeights(config_, path_, "train", BuiltinOps());
  ASSERT_TRUE(train.ok()) << train.error().message;
  EXPECT_EQ(train->evaluation.count, 10);
  config_.validation = 3;
  EXPECT_EQ(EvaluateWeights(config_, path_, "validation", BuiltinOps())->evaluation.count, 3);
  config_.batch = 100;
  EXPECT_EQ(EvaluateWeights(config_, path_, "test", BuiltinOps())->evaluation.count, 6);
}

TEST_F(EvaluateRunTest, NoValidationSet) {
  SaveStart(TinyRun());
  const Error error = Refusal(config_, "validation");
  EXPECT_EQ(error.kind, ErrorKind::kBadInput);
  EXPECT_EQ(error.message, "part 'validation': requires --validation N");
}

TEST_F(EvaluateRunTest, MissingDamagedOrOtherWeights) {
  EXPECT_EQ(Refusal(config_).kind, ErrorKind::kBadInput);
  EXPECT_NE(Refusal(config_).message.find(path_), std::string::npos);
  Put(path_, "not a safetensors file");
  EXPECT_EQ(Refusal(config_).kind, ErrorKind::kBadInput);
  SaveStart(TinyRun());
  config_.model = "wrn-16-1";
  const Error other = Refusal(config_);
  EXPECT_EQ(other.kind, ErrorKind::kBadInput);
  EXPECT_NE(other.message.find("the file has no such tensor"), std::string::npos) << other.message;
}

TEST_F(EvaluateRunTest, OverBudget) {
  SaveStart(TinyRun());
  config_.budget_bytes = 1000;
  EXPECT_EQ(Refusal(config_).kind, ErrorKind::kDoesNotFit);
}

TEST_F(EvaluateRunTest, UnknownSimdTarget) {
  config_.simd = "mmx";
  EXPECT_EQ(Refusal(config_).message.find("--simd mmx: "), 0U);
}

TEST_F(EvaluateRunTest, ARunInPartsIsEvaluatedInParts) {
  TrainConfig run;
  run.batch = 100;
  EXPECT_EQ(EvaluationConfig(run).batch, 100);
  run.microbatch = 30;  // four parts of 25
  EXPECT_EQ(EvaluationConfig(run).batch, 25);
  EXPECT_EQ(EvaluationConfig(run).microbatch, 0);
}

}  // namespace
}  // namespace thimble
