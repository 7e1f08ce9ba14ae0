#include "thimble/model/translator_decoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/model/small_translator_spec.h"
#include "thimble/ops/builtin_ops.h"

namespace thimble {
namespace {

using testing::IsSubsetOf;

constexpr DecodingShape kShape = {.sentences = 2, .source_positions = 5, .hypotheses = 3};

std::map<std::string, Shape> ValuesOf(const Graph& graph, Role role) {
  std::map<std::string, Shape> values;
  for (const Value& value : graph.values) {
    if (value.role == role && !value.producer.valid()) values[value.name] = value.shape;
  }
  return values;
}

TEST(TranslatorDecoding, BothGraphsHaveTheSameCaches) {
  const Graph encode = BuildEncoding(SmallSpec(), BuiltinOps(), kShape).value();
  const Graph step = BuildStep(SmallSpec(), BuiltinOps(), kShape, 6).value();
  const auto caches = ValuesOf(encode, Role::kCache);
  EXPECT_EQ(caches, ValuesOf(step, Role::kCache));
  EXPECT_EQ(caches.size(), 6U);
  EXPECT_EQ(caches.at("decoder.layers.1.encoder_attn.keys"), (Shape{2, 5, 16}));
  EXPECT_EQ(caches.at("decoder.layers.1.conv.history"), (Shape{4, 2, 3, 16}));
}

// All caches are written before the first step, the step writes only its histories.
TEST(TranslatorDecoding, EncodingFillsEveryCache) {
  const Graph encode = BuildEncoding(SmallSpec(), BuiltinOps(), kShape).value();
  EXPECT_EQ(encode.carries.size(), 6U);
  EXPECT_TRUE(encode.outputs.empty());
  EXPECT_EQ(BuildStep(SmallSpec(), BuiltinOps(), kShape, 6)->carries.size(), 2U);
}

TEST(TranslatorDecoding, TogetherTheyHaveTheParametersOfTheNetwork) {
  auto parameters =
      ValuesOf(BuildEncoding(SmallSpec(), BuiltinOps(), kShape).value(), Role::kParameter);
  parameters.merge(
      ValuesOf(BuildStep(SmallSpec(), BuiltinOps(), kShape, 6).value(), Role::kParameter));
  const auto whole = BuildTranslator(SmallSpec(), BuiltinOps(), {1, 2, 3}, Mode::kTrain);
  EXPECT_EQ(parameters, ValuesOf(whole->graph, Role::kParameter));
}

TEST(TranslatorDecoding, AncestorsReachAsFarAsTheLargestKernel) {
  EXPECT_EQ(AncestorsOf(SmallSpec()), 4);
  const Graph step = BuildStep(SmallSpec(), BuiltinOps(), kShape, 6).value();
  EXPECT_EQ(step.value(step.Find(kAncestorsInput)).shape, (Shape{2, 3, 4}));
}

TEST(TranslatorDecoding, RefusesWhatCannotBeBuilt) {
  EXPECT_FALSE(BuildEncoding(SmallSpec(), BuiltinOps(), {0, 5, 3}).ok());
  EXPECT_FALSE(BuildStep(SmallSpec(), BuiltinOps(), {2, 5, 0}, 6).ok());
  EXPECT_FALSE(BuildStep(SmallSpec(), BuiltinOps(), kShape, 41).ok());  // of 40 words
}

}  // namespace
}  // namespace thimble
