// Compares the report's count of activations (wrn-28-2, batch 100: 381.39 MB) with ours, to the
// byte, so that the explanation in docs/memory-accounting.md stays true.
#include <gtest/gtest.h>

#include <set>

#include "tests/train/image_programs.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/program_record.h"
#include "thimble/report/plan_answer.h"
#include "thimble/train/planning/training_program.h"

namespace thimble {
namespace {

constexpr auto kActivations = static_cast<size_t>(Category::kActivations);

class ReportCountTest : public testing::Test {
 protected:
  static TrainConfig Config() {
    TrainConfig config;
    config.threads = 2;
    return config;
  }

  // Bytes of the values that satisfy `wanted`.
  template <class Wanted>
  size_t Sum(const Wanted& wanted) const {
    size_t sum = 0;
    for (size_t i = 0; i < graph().values.size(); ++i) {
      if (wanted(ValueId(i))) sum += graph().values[i].size_bytes();
    }
    return sum;
  }
  const Graph& graph() const { return program_.main_plan().graph; }
  size_t BytesOf(const char* name) const { return graph().value(graph().Find(name)).size_bytes(); }

  TrainingProgram program_ =
      MakeTrainingProgram(Config(), ImageSpec{}, {50000, 0, 10000}, BuiltinOps()).value();
  MemoryAccount account_ = Account(program_.main_plan());
};

TEST_F(ReportCountTest, InputsOfConvolutionsNormsAndHeadAreTheReportsCount) {
  std::set<size_t> kept;
  for (const Node& node : graph().nodes) {
    if (node.phase != Phase::kForward) continue;
    if (node.op == "conv2d" || node.op == "conv2d_add" || node.op == "batch_norm" ||
        node.op == "avg_pool2d" || node.op == "linear") {
      kept.insert(node.inputs[0].index());
    }
  }
  const size_t report = Sum([&](ValueId id) { return kept.contains(id.index()); });
  EXPECT_EQ(report, 381'388'800U);

  // Not in the report's count: means and variances of the batch, and the loss with its count.
  const size_t statistics = Sum([&](ValueId id) {
    const std::string& name = graph().value(id).name;
    const bool small = name.ends_with(".mean") || name.ends_with(".variance");
    return small && graph().value(id).role == Role::kActivation;
  });
  EXPECT_EQ(statistics, 2U * 4 * (16 + 7 * 32 + 32 + 7 * 64 + 64 + 7 * 128 + 128));
  EXPECT_EQ(LargestOf(account_)[kActivations], report + statistics);
  // At the peak, backward of the last norm, the head's values are released: the norm's input is
  // overwritten by its gradient, its output was needed only for its shape, the classifier is done.
  const size_t head = BytesOf("block3.layer.3.conv2.sum") + BytesOf("bn1.relu") + BytesOf("pool.y");
  EXPECT_EQ(account_.at_peak[kActivations],
            report + statistics + BytesOf("loss") + BytesOf("correct") - head);
}

TEST_F(ReportCountTest, ActivationsDominate) {
  EXPECT_GT(account_.at_peak[kActivations], program_.program.arena_bytes * 9 / 10);
}

}  // namespace
}  // namespace thimble
