#include "thimble/program/precision/storage_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/graph/verify_graph.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TEST(StorageTypes, PrecisionGivesAllCategoriesOneType) {
  const StorageTypes types = ParsePrecision("bf16").value();
  for (const auto& type : types.types) EXPECT_EQ(type, DType::kBF16);
  EXPECT_EQ(Describe(types), "all numbers bf16");
  EXPECT_TRUE(HasShortState(types));
  EXPECT_FALSE(HasShortState(ParsePrecision("fp32").value()));
}

TEST(StorageTypes, Mixed16KeepsWhatTheOptimizerChangesInFp32) {
  const StorageTypes types = ParsePrecision("mixed16").value();
  EXPECT_EQ(types[StoredCategory::kModel], DType::kF32);
  EXPECT_EQ(types[StoredCategory::kOptimizer], DType::kF32);
  EXPECT_EQ(types[StoredCategory::kActivations], DType::kF16);
  EXPECT_FALSE(HasShortState(types));
}

TEST(StorageTypes, StoreChangesSingleCategories) {
  StorageTypes types = ParsePrecision("fp16").value();
  ASSERT_TRUE(ParseStore("optimizer=q8,activation-gradients=bf16", types).ok());
  EXPECT_EQ(types[StoredCategory::kOptimizer], DType::kQ8);
  EXPECT_EQ(types[StoredCategory::kActivationGradients], DType::kBF16);
  EXPECT_EQ(types[StoredCategory::kModel], DType::kF16);
  EXPECT_EQ(Describe(types),
            "model fp16, optimizer q8, gradients fp16, activations fp16, activation-gradients "
            "bf16");
}

TEST(StorageTypes, WrongTexts) {
  StorageTypes types;
  const auto message = [&](std::string_view store) {
    return ParseStore(store, types).error().message;
  };
  EXPECT_THAT(message("nonsense=fp16"), HasSubstr("expected CATEGORY=TYPE"));
  EXPECT_THAT(message("model"), HasSubstr("expected CATEGORY=TYPE"));
  EXPECT_THAT(message("model=fp8"), HasSubstr("model can be stored as fp32, fp16 or bf16"));
  EXPECT_THAT(message("model=q8"), HasSubstr("only the optimizer's state as q8"));
  EXPECT_THAT(message("optimizer=fp64"), HasSubstr("fp32, fp16, bf16 or q8"));
  EXPECT_THAT(ParsePrecision("q8").error().message, HasSubstr("fp32, fp16, bf16 or mixed16"));
}

class StoreAsTest : public testing::Test {
 protected:
  // A training graph and a graph for evaluation with these types.
  static std::vector<NamedGraph> Make(const StorageTypes& types) {
    std::vector<NamedGraph> graphs(2);
    graphs[0].graph = TrainingGraph("wrn-10-1", 2, TinyImages());
    graphs[1].graph = EvaluationGraph("wrn-10-1", 2, TinyImages());
    StoreAs(types, BuiltinOps(), graphs);
    for (const NamedGraph& named : graphs) {
      const auto verified = VerifyGraph(named.graph, BuiltinOps());
      EXPECT_TRUE(verified.ok()) << verified.error().message;
    }
    return graphs;
  }
  static DType TypeOf(const NamedGraph& named, std::string_view name) {
    const ValueId id = named.graph.Find(name);
    EXPECT_TRUE(id.valid()) << name;
    return named.graph.value(id).dtype;
  }
};

TEST_F(StoreAsTest, AllGraphsAgreeAndExactPortsStay) {
  const auto graphs = Make(ParsePrecision("fp16").value());
  for (const NamedGraph& named : graphs) {
    EXPECT_EQ(TypeOf(named, "conv1.weight"), DType::kF16);
    EXPECT_EQ(TypeOf(named, "bn1.weight"), DType::kF32);
    EXPECT_EQ(TypeOf(named, "bn1.running_mean"), DType::kF32);
    EXPECT_EQ(TypeOf(named, "loss"), DType::kF32);
  }
  EXPECT_EQ(TypeOf(graphs[0], "momentum.conv1.weight"), DType::kF16);
  EXPECT_EQ(TypeOf(graphs[0], "dconv1.weight"), DType::kF16);
  EXPECT_EQ(TypeOf(graphs[0], "learning_rate"), DType::kF32);
}

TEST_F(StoreAsTest, EightBitsAreForTheOptimizerOnly) {
  StorageTypes types;
  ASSERT_TRUE(ParseStore("optimizer=q8,activation-gradients=bf16", types).ok());
  const auto graphs = Make(types);
  EXPECT_EQ(TypeOf(graphs[0], "momentum.conv1.weight"), DType::kQ8);
  EXPECT_EQ(TypeOf(graphs[0], "conv1.weight"), DType::kF32);
  EXPECT_EQ(TypeOf(graphs[0], "dconv1.weight"), DType::kF32);
  size_t short_gradients = 0;
  for (const Value& value : graphs[0].graph.values) {
    if (value.dtype != DType::kBF16) continue;
    EXPECT_EQ(value.role, Role::kGradient) << value.name;
    ++short_gradients;
  }
  EXPECT_GT(short_gradients, 10U);
}

}  // namespace
}  // namespace thimble
