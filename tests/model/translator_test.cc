#include "thimble/model/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "thimble/data/text/dictionary.h"
#include "thimble/grad/training_graph.h"
#include "thimble/model/sequence_layers.h"
#include "thimble/ops/builtin_ops.h"
#include "thimble/plan/program.h"

namespace thimble {
namespace {

using testing::HasSubstr;

constexpr SentenceShape kFewSentences = {
    .sentences = 2, .source_positions = 5, .target_positions = 4};

TranslatorSpec Spec(std::string_view name, int64_t source_words, int64_t target_words) {
  const auto spec = FindTranslator(name, source_words, target_words);
  EXPECT_TRUE(spec.ok());
  return *spec;
}

Network Build(const TranslatorSpec& spec, const SentenceShape& shape, Mode mode = Mode::kTrain) {
  auto network = BuildTranslator(spec, BuiltinOps(), shape, mode);
  EXPECT_TRUE(network.ok()) << network.error().message;
  return std::move(network).value();
}

// The published network with the dictionaries of IWSLT'14: tables and output of 11,321,344 numbers,
// 1,577,472 + 2,048
// * kernel for each layer of the encoder and 2,629,120 + 2,048 * kernel for each of the decoder.
TEST(Translator, HasAsManyParametersAsThePublishedOne) {
  const TranslatorSpec spec = Spec("dynamicconv-iwslt", 8848, 6632);
  const Network network = Build(spec, kFewSentences);
  EXPECT_EQ(CountParameters(network.graph), 38'685'184);
  EXPECT_EQ(network.graph.value(network.graph.Find("decoder.embed_out")).shape, (Shape{6632, 512}));
  EXPECT_EQ(
      network.graph.value(network.graph.Find("encoder.layers.6.conv.weight_linear.weight")).shape,
      (Shape{4 * 31, 512}));
}

TEST(Translator, EvaluationHasTheSameParametersAndDrawsNothing) {
  const TranslatorSpec spec = Spec("dynamicconv-tiny", 40, 30);
  const Network train = Build(spec, kFewSentences);
  const Network evaluate = Build(spec, {3, 7, 6}, Mode::kEvaluate);
  const auto parameters = [](const Graph& graph) {
    std::set<std::string> names;
    for (const Value& value : graph.values) {
      if (value.role == Role::kParameter) names.insert(value.name + ToString(value.shape));
    }
    return names;
  };
  EXPECT_EQ(parameters(train.graph), parameters(evaluate.graph));
  EXPECT_TRUE(train.graph.Find(kSamplesInput).valid());
  EXPECT_FALSE(evaluate.graph.Find(kSamplesInput).valid());
  EXPECT_EQ(train.inits.size(), evaluate.inits.size());
}

// Models and data do not include each other.
TEST(Translator, AgreesWithDictionariesAboutPadding) { EXPECT_EQ(kPaddingToken, Dictionary::kPad); }

TEST(Translator, ReturnsLossAndCounts) {
  const Network network = Build(Spec("dynamicconv-tiny", 40, 30), kFewSentences);
  std::vector<std::string> names;
  for (const ValueId output : network.graph.outputs) {
    names.push_back(network.graph.value(output).name);
  }
  EXPECT_THAT(names, testing::ElementsAre(kLossOutput, kNllOutput, kCorrectOutput));
  EXPECT_EQ(network.graph.value(network.loss).name, kLossOutput);
}

// 160 sentences of 25 + 25 tokens with Adam: 1.75 GB is less than any framework takes.
TEST(Translator, PlainPlanOfAFullBatchFits) {
  const TranslatorSpec spec = Spec("dynamicconv-iwslt", 8848, 6632);
  Network network = Build(spec, {160, 25, 25});
  UpdateSpec update;
  update.optimizer.name = "adam";
  ASSERT_TRUE(AppendUpdate(network.graph, BuiltinOps(), network.loss, update).ok());
  const auto program = PlanProgram({{"train", std::move(network.graph), 1}}, BuiltinOps(), {}, {});
  ASSERT_TRUE(program.ok()) << program.error().message;
  EXPECT_LE(program->arena_bytes, 1'750'000'000U);
}

TEST(Translator, RefusesWhatCannotBeBuilt) {
  const auto unknown = FindTranslator("dynamicconv-huge", 10, 10);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("there are dynamicconv-iwslt and"));
  const auto error = [](const TranslatorSpec& spec, const SentenceShape& shape) {
    const auto network = BuildTranslator(spec, BuiltinOps(), shape, Mode::kTrain);
    return network.ok() ? "" : network.error().message;
  };
  TranslatorSpec spec = Spec("dynamicconv-tiny", 40, 30);
  EXPECT_THAT(error(spec, {0, 5, 4}), HasSubstr("a batch of 0 sentences"));
  spec.heads = 5;
  EXPECT_THAT(error(spec, kFewSentences), HasSubstr("64 channels cannot be divided among 5 heads"));
  spec.heads = 4;
  spec.encoder_kernels = {4};
  EXPECT_THAT(error(spec, kFewSentences),
              HasSubstr("a kernel of 4 in the encoder, expected an odd number"));
  EXPECT_THAT(error(Spec("dynamicconv-tiny", 1, 30), kFewSentences),
              HasSubstr("dictionaries of 1 and 30 entries"));
}

}  // namespace
}  // namespace thimble
