#include "thimble/program/microbatch/microbatch.h"

#include <gtest/gtest.h>

#include "thimble/model/network_builder.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

class MicrobatchTechnique : public testing::Test {
 protected:
  std::string Exactness(const Graph& forward, const std::string& value, int64_t batch) const {
    return technique_->lever()->exactness(forward, {value, batch});
  }
  static Graph MakeForward(bool with_norm) {
    NetworkBuilder net(BuiltinOps(), Mode::kTrain);
    const ValueId x = net.Input("x", {2, 3}, DType::kF32);
    net.Linear("fc", with_norm ? net.BatchNorm("bn", x) : x, 4);
    return std::move(net).Finish().value().graph;
  }

  const std::unique_ptr<const Technique> technique_ = MakeMicrobatch();
};

TEST_F(MicrobatchTechnique, CutsNearlyEqually) {
  NearlyEqualParts parts{100, 1};
  EXPECT_EQ(technique_->CutBatch("10", {100}, parts), "10 parts of 10 samples");
  EXPECT_EQ(parts.parts, 10);
  parts = {7, 1};
  EXPECT_EQ(technique_->CutBatch("3", {7}, parts), "3 parts of at most 3 samples");
  parts = {7, 1};
  EXPECT_EQ(technique_->CutBatch("7", {7}, parts), "");
  EXPECT_EQ(technique_->CutBatch("", {7}, parts), "");
  EXPECT_EQ(parts.parts, 1);
}

TEST_F(MicrobatchTechnique, IsEqualToRoundingWithoutBatchNorm) {
  EXPECT_EQ(Exactness(MakeForward(false), "2", 4), "equal");
  EXPECT_EQ(Exactness(MakeForward(true), "2", 4), "lossy: batch-norm statistics per 2 samples");
  EXPECT_EQ(Exactness(MakeForward(true), "1", 4), "lossy: batch-norm statistics per 1 sample");
  EXPECT_EQ(Exactness(MakeForward(true), "4", 4), "same-bits");
}

TEST_F(MicrobatchTechnique, SmallerPartsAreWorthTrying) {
  const auto& worth_trying = technique_->lever()->worth_trying;
  EXPECT_EQ(worth_trying({"", 100}), (std::vector<std::string>{"10"}));
  EXPECT_TRUE(worth_trying({"10", 100}).empty());
  EXPECT_TRUE(worth_trying({"", 10}).empty());
}

}  // namespace
}  // namespace thimble
