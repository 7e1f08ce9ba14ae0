#include "thimble/model/sequence_layers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace thimble {
namespace {

constexpr double kLayerNormEpsilon = 1e-5;

// The first position of a sentence has this number: fairseq counts from behind its padding entry.
constexpr int64_t kFirstPosition = kPaddingToken + 1;

// C of x (B, T, C).
int64_t ChannelsOf(NetworkBuilder& net, const std::string& name, ValueId x) {
  if (net.failed()) return 1;
  if (net.shape(x).rank() == 3) return net.shape(x)[2];
  net.Fail(BadInput(fmt::format("layer '{}': expected an input (B, T, C), got {}", name,
                                ToString(net.shape(x)))));
  return 1;
}

double InverseRoot(int64_t channels) { return 1 / std::sqrt(static_cast<double>(channels)); }

NodeSpec LinearSpec(const std::string& layer, std::vector<ValueId> inputs) {
  return {.op = "linear",
          .inputs = std::move(inputs),
          .attributes = {{"row_dims", int64_t{2}}},
          .layer = layer};
}

NodeSpec LinearWithBias(NetworkBuilder& net, const std::string& name, ValueId x, int64_t features) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId weight =
      net.Parameter(name + ".weight", {features, channels}, InitRule::Kind::kUniform,
                    std::sqrt(6.0 / static_cast<double>(channels + features)));
  const ValueId bias = net.Parameter(name + ".bias", {features}, InitRule::Kind::kConstant, 0);
  return LinearSpec(name, {x, weight, bias});
}

// The logits of the taps of a dynamic convolution.
ValueId TapLogits(NetworkBuilder& net, const std::string& name, ValueId x,
                  const DynamicConvSpec& spec) {
  const int64_t channels = ChannelsOf(net, name, x);
  const std::string layer = name + ".weight_linear";
  const ValueId weight = net.Parameter(layer + ".weight", {spec.heads * spec.kernel, channels},
                                       InitRule::Kind::kUniform, InverseRoot(channels));
  return net.Apply(LinearSpec(layer, {x, weight}));
}

// inputs: tokens and, if the position is given, that.
ValueId Embed(NetworkBuilder& net, const std::string& name, std::vector<ValueId> inputs,
              int64_t words, int64_t channels, int64_t advance) {
  const ValueId table = net.Parameter(name + ".weight", {words, channels}, InitRule::Kind::kNormal,
                                      InverseRoot(channels));
  inputs.insert(inputs.begin() + 1, table);
  return net.Apply({.op = "embedding",
                    .inputs = std::move(inputs),
                    .attributes = {{"scale", std::sqrt(static_cast<double>(channels))},
                                   {"first_position", kFirstPosition},
                                   {"padding", kPaddingToken},
                                   {"advance", advance}},
                    .layer = name});
}

ValueId OutputProjection(NetworkBuilder& net, const std::string& name, ValueId x, int64_t words) {
  const int64_t channels = ChannelsOf(net, name, x);
  return net.Parameter(name, {words, channels}, InitRule::Kind::kNormal, InverseRoot(channels));
}

// An op with dropout of weights: with random draws in training only.
ValueId ApplyWithDropout(NetworkBuilder& net, NodeSpec spec, double rate) {
  if (net.failed()) return {};
  if (net.mode() == Mode::kTrain && rate > 0) {
    const Attributes draws = net.Draws(rate);
    spec.attributes.Set("rate", rate);
    spec.attributes.Set("seed", draws.Int("seed"));
    spec.attributes.Set("stream", draws.Int("stream"));
    spec.inputs.push_back(net.Samples(net.shape(spec.inputs[0])[0]));
    spec.inputs.push_back(net.Epoch());
  }
  return net.Apply(std::move(spec));
}

// inputs: queries, keys, values and lengths of the source.
ValueId Attend(NetworkBuilder& net, const std::string& name, std::vector<ValueId> inputs,
               const AttentionSpec& spec) {
  const int64_t channels = ChannelsOf(net, name, inputs[0]);
  const ValueId y = ApplyWithDropout(net,
                                     {.op = "attention",
                                      .inputs = std::move(inputs),
                                      .attributes = {{"heads", spec.heads}},
                                      .layer = name},
                                     spec.dropout);
  return PositionwiseLinear(net, name + ".out_proj", y, channels);
}

}  // namespace

ValueId Embedding(NetworkBuilder& net, const std::string& name, ValueId tokens, int64_t words,
                  int64_t channels) {
  return Embed(net, name, {tokens}, words, channels, /*advance=*/1);
}

ValueId EmbeddingOfStep(NetworkBuilder& net, const std::string& name, ValueId tokens, ValueId step,
                        int64_t words, int64_t channels) {
  return Embed(net, name, {tokens, step}, words, channels, /*advance=*/0);
}

ValueId PositionwiseLinear(NetworkBuilder& net, const std::string& name, ValueId x,
                           int64_t features) {
  return net.Apply(LinearWithBias(net, name, x, features));
}

void PositionwiseLinearToCache(NetworkBuilder& net, const std::string& name, ValueId x,
                               ValueId cache) {
  if (net.failed()) return;
  net.ApplyCarrying(LinearWithBias(net, name, x, net.shape(cache)[2]), {cache});
}

ValueId LayerNorm(NetworkBuilder& net, const std::string& name, ValueId x) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId gamma = net.Parameter(name + ".weight", {channels}, InitRule::Kind::kConstant, 1);
  const ValueId beta = net.Parameter(name + ".bias", {channels}, InitRule::Kind::kConstant, 0);
  return net.Apply({.op = "layer_norm",
                    .inputs = {x, gamma, beta},
                    .attributes = {{"epsilon", kLayerNormEpsilon}},
                    .layer = name});
}

ValueId DynamicConv(NetworkBuilder& net, const std::string& name, ValueId x, ValueId lengths,
                    const DynamicConvSpec& spec) {
  const ValueId taps = TapLogits(net, name, x, spec);
  return ApplyWithDropout(net,
                          {.op = "dynamic_conv",
                           .inputs = {x, taps, lengths},
                           .attributes = {{"heads", spec.heads}, {"causal", int64_t{spec.causal}}},
                           .layer = name},
                          spec.dropout);
}

ValueId DynamicConvStep(NetworkBuilder& net, const std::string& name, ValueId x, ValueId history,
                        const StepInputs& inputs, const DynamicConvSpec& spec) {
  const ValueId taps = TapLogits(net, name, x, spec);
  return net.ApplyCarrying({.op = "dynamic_conv_step",
                            .inputs = {x, taps, history, inputs.ancestors, inputs.step},
                            .attributes = {{"heads", spec.heads}},
                            .layer = name},
                           {ValueId(), history})[0];
}

ValueId AttentionTo(NetworkBuilder& net, const std::string& name, ValueId x, ValueId keys,
                    ValueId values, ValueId source_lengths, const AttentionSpec& spec) {
  const ValueId query = PositionwiseLinear(net, name + ".q_proj", x, ChannelsOf(net, name, x));
  return Attend(net, name, {query, keys, values, source_lengths}, spec);
}

ValueId Attention(NetworkBuilder& net, const std::string& name, ValueId x, ValueId source,
                  ValueId source_lengths, const AttentionSpec& spec) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId query = PositionwiseLinear(net, name + ".q_proj", x, channels);
  const ValueId key = PositionwiseLinear(net, name + ".k_proj", source, channels);
  const ValueId value = PositionwiseLinear(net, name + ".v_proj", source, channels);
  return Attend(net, name, {query, key, value, source_lengths}, spec);
}

void TopWords(NetworkBuilder& net, const std::string& name, ValueId x, int64_t words,
              int64_t count) {
  const ValueId weight = OutputProjection(net, name, x, words);
  net.ApplyWithResults(
      {.op = "top_words",
       .inputs = {x, weight},
       .attributes = {{"count", count}, {"first_word", kEndToken}, {"end", kEndToken}},
       .layer = "words",
       .output_names = {kTopWordsOutput, kLogProbabilitiesOutput, kEndLogProbabilityOutput}},
      3);
}

ValueId TokenCrossEntropy(NetworkBuilder& net, const std::string& name, ValueId x, ValueId targets,
                          int64_t words, double smoothing) {
  const ValueId weight = OutputProjection(net, name, x, words);
  return net.ApplyWithResults(
      {.op = "token_cross_entropy",
       .inputs = {x, weight, targets},
       .attributes = {{"padding", kPaddingToken}, {"smoothing", smoothing}},
       .layer = "loss",
       .output_names = {kLossOutput, kNllOutput, kCorrectOutput, "loss.log_sums"}},
      3)[0];
}

}  // namespace thimble
