#include "thimble/program/sparsity/sparse_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/model_graphs.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::HasSubstr;

TEST(MatchesPattern, StarsStandForAnyCharacters) {
  EXPECT_TRUE(MatchesPattern("conv1.weight", "conv1.weight"));
  EXPECT_FALSE(MatchesPattern("conv1", "conv1.weight"));
  EXPECT_TRUE(MatchesPattern("block1.*", "block1.layer.0.conv1.weight"));
  EXPECT_TRUE(MatchesPattern("*conv?,*.conv2.*", "block1.layer.0.conv2.weight"));
  EXPECT_TRUE(MatchesPattern("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(MatchesPattern("a*b*c", "a-b-b"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_FALSE(MatchesPattern("", "conv1.weight"));
}

class ChooseSparseTensorsTest : public testing::Test {
 protected:
  static Result<SparseTensors> Choose(const Graph& graph, std::string_view patterns,
                                      double sparsity = 0.8) {
    return ChooseSparseTensors(graph, BuiltinOps(), sparsity, patterns);
  }
  const Graph wide_ = TrainingGraph("wrn-28-2", 2);
};

// The counts of the paper on dynamic sparse reparameterization.
TEST_F(ChooseSparseTensorsTest, BlockConvolutionsOfAWideResNet) {
  const SparseTensors chosen = Choose(wide_, "").value();
  EXPECT_EQ(chosen.tensors.size(), 24U);
  EXPECT_EQ(chosen.elements, 1'451'520);
  EXPECT_EQ(chosen.active, 290'294);  // each layer rounds down
  EXPECT_EQ(chosen.blocks, 1'451'520 / 256);
  EXPECT_EQ(chosen.tensors[0].name, "block1.layer.0.conv1.weight");
  EXPECT_EQ(chosen.tensors[1].first_block, 16 * 9 * 32 / 256);
}

TEST_F(ChooseSparseTensorsTest, EachTensorBeginsAtABlockOfItsOwn) {
  const SparseTensors chosen = Choose(TrainingGraph("wrn-10-1", 2), "").value();
  int64_t end = 0;
  for (const SparseTensor& tensor : chosen.tensors) {
    EXPECT_EQ(tensor.first_block, end);
    end += (tensor.elements + 255) / 256;
  }
  EXPECT_EQ(end, chosen.blocks);
}

TEST_F(ChooseSparseTensorsTest, PatternsChooseOtherLayers) {
  const SparseTensors chosen = Choose(wide_, "conv1.weight,block1.*").value();
  EXPECT_EQ(chosen.tensors.size(), 1U + 9U);  // with the shortcut
  EXPECT_EQ(chosen.tensors[0].name, "conv1.weight");
}

TEST_F(ChooseSparseTensorsTest, AtLeastOneWeightOfALayerIsActive) {
  const SparseTensors chosen = Choose(wide_, "conv1.weight", 0.9999).value();
  EXPECT_EQ(chosen.active, 1);
}

TEST_F(ChooseSparseTensorsTest, SaysWhyThereIsNothingToMakeSparse) {
  EXPECT_THAT(Choose(wide_, "fc.*").error().message,
              HasSubstr("'fc.*' matches no filters of a convolution; their names are conv1.weight "
                        "to block3.layer.3.conv2.weight"));
  const Graph empty;
  EXPECT_THAT(Choose(empty, "").error().message, HasSubstr("the model has nothing to make sparse"));
  EXPECT_THAT(Choose(empty, "a").error().message, HasSubstr("has no convolutions"));
}

}  // namespace
}  // namespace thimble
