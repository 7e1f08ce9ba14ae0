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

ValueId Linear(NetworkBuilder& net, const std::string& layer, std::vector<ValueId> inputs) {
  return net.Apply({.op = "linear",
                    .inputs = std::move(inputs),
                    .attributes = {{"row_dims", int64_t{2}}},
                    .layer = layer});
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

}  // namespace

ValueId Embedding(NetworkBuilder& net, const std::string& name, ValueId tokens, int64_t words,
                  int64_t channels) {
  const ValueId table = net.Parameter(name + ".weight", {words, channels}, InitRule::Kind::kNormal,
                                      InverseRoot(channels));
  return net.Apply({.op = "embedding",
                    .inputs = {tokens, table},
                    .attributes = {{"scale", std::sqrt(static_cast<double>(channels))},
                                   {"first_position", kFirstPosition},
                                   {"padding", kPaddingToken}},
                    .layer = name});
}

ValueId PositionwiseLinear(NetworkBuilder& net, const std::string& name, ValueId x,
                           int64_t features) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId weight =
      net.Parameter(name + ".weight", {features, channels}, InitRule::Kind::kUniform,
                    std::sqrt(6.0 / static_cast<double>(channels + features)));
  const ValueId bias = net.Parameter(name + ".bias", {features}, InitRule::Kind::kConstant, 0);
  return Linear(net, name, {x, weight, bias});
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
  const int64_t channels = ChannelsOf(net, name, x);
  const std::string taps_name = name + ".weight_linear";
  const ValueId weight = net.Parameter(taps_name + ".weight", {spec.heads * spec.kernel, channels},
                                       InitRule::Kind::kUniform, InverseRoot(channels));
  const ValueId taps = Linear(net, taps_name, {x, weight});
  return ApplyWithDropout(net,
                          {.op = "dynamic_conv",
                           .inputs = {x, taps, lengths},
                           .attributes = {{"heads", spec.heads}, {"causal", int64_t{spec.causal}}},
                           .layer = name},
                          spec.dropout);
}

ValueId Attention(NetworkBuilder& net, const std::string& name, ValueId x, ValueId source,
                  ValueId source_lengths, const AttentionSpec& spec) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId query = PositionwiseLinear(net, name + ".q_proj", x, channels);
  const ValueId key = PositionwiseLinear(net, name + ".k_proj", source, channels);
  const ValueId value = PositionwiseLinear(net, name + ".v_proj", source, channels);
  const ValueId y = ApplyWithDropout(net,
                                     {.op = "attention",
                                      .inputs = {query, key, value, source_lengths},
                                      .attributes = {{"heads", spec.heads}},
                                      .layer = name},
                                     spec.dropout);
  return PositionwiseLinear(net, name + ".out_proj", y, channels);
}

ValueId TokenCrossEntropy(NetworkBuilder& net, const std::string& name, ValueId x, ValueId targets,
                          int64_t words, double smoothing) {
  const int64_t channels = ChannelsOf(net, name, x);
  const ValueId weight =
      net.Parameter(name, {words, channels}, InitRule::Kind::kNormal, InverseRoot(channels));
  return net.ApplyWithResults(
      {.op = "token_cross_entropy",
       .inputs = {x, weight, targets},
       .attributes = {{"padding", kPaddingToken}, {"smoothing", smoothing}},
       .layer = "loss",
       .output_names = {kLossOutput, kNllOutput, kCorrectOutput, "loss.log_sums"}},
      3)[0];
}

}  // namespace thimble
