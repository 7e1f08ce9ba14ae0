#include "thimble/model/translator_decoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/model/sequence_layers.h"
#include "thimble/model/translator_layers.h"

namespace thimble {
namespace {

// The caches of a layer of the decoder.
struct LayerCaches {
  ValueId keys;     // (B, S, C)
  ValueId values;   // (B, S, C)
  ValueId history;  // (K - 1, B, N, C)
};

LayerCaches AddCaches(NetworkBuilder& net, const TranslatorSpec& spec, const DecodingShape& shape,
                      size_t index) {
  const std::string layer = TranslatorLayers::DecoderLayer(index);
  const Shape source = {shape.sentences, shape.source_positions, spec.width};
  const Shape history = {spec.decoder_kernels[index] - 1, shape.sentences, shape.hypotheses,
                         spec.width};
  return {net.Cache(layer + ".encoder_attn.keys", source),
          net.Cache(layer + ".encoder_attn.values", source),
          net.Cache(layer + ".conv.history", history)};
}

Result<void> CheckDecoding(const TranslatorSpec& spec, const DecodingShape& shape) {
  THIMBLE_TRY(CheckTranslator(spec));
  if (shape.sentences >= 1 && shape.source_positions >= 1 && shape.hypotheses >= 1) return {};
  return BadInput(
      fmt::format("{} sentences with {} positions and {} hypotheses, expected at least 1 of each",
                  shape.sentences, shape.source_positions, shape.hypotheses));
}

void DescribeEncoding(NetworkBuilder& net, const TranslatorSpec& spec, const DecodingShape& shape) {
  TranslatorLayers layers(net, spec);
  const ValueId source = layers.Tokens(kSourceInput, {shape.sentences, shape.source_positions});
  const ValueId lengths = layers.Tokens(kSourceLengthsInput, {shape.sentences});
  const ValueId memory = layers.Encoder(source, lengths);
  for (size_t i = 0; i < spec.decoder_kernels.size(); ++i) {
    const std::string layer = TranslatorLayers::DecoderLayer(i);
    const LayerCaches caches = AddCaches(net, spec, shape, i);
    PositionwiseLinearToCache(net, layer + ".encoder_attn.k_proj", memory, caches.keys);
    PositionwiseLinearToCache(net, layer + ".encoder_attn.v_proj", memory, caches.values);
    net.ApplyCarrying({.op = "clear", .inputs = {caches.history}, .layer = layer + ".conv"},
                      {caches.history});
  }
}

void DescribeStep(NetworkBuilder& net, const TranslatorSpec& spec, const DecodingShape& shape,
                  int64_t candidates) {
  TranslatorLayers layers(net, spec);
  const Shape hypotheses = {shape.sentences, shape.hypotheses};
  const ValueId lengths = layers.Tokens(kSourceLengthsInput, {shape.sentences});
  const ValueId tokens = layers.Tokens(kHypothesisInput, hypotheses);
  const StepInputs inputs{
      layers.Tokens(kAncestorsInput, {shape.sentences, shape.hypotheses, AncestorsOf(spec)}),
      layers.Tokens(kStepInput, {1})};
  ValueId x = EmbeddingOfStep(net, TranslatorLayers::kTargetTable, tokens, inputs.step,
                              spec.target_words, spec.width);
  for (size_t i = 0; i < spec.decoder_kernels.size(); ++i) {
    const std::string layer = TranslatorLayers::DecoderLayer(i);
    const LayerCaches caches = AddCaches(net, spec, shape, i);
    const DynamicConvSpec conv{.heads = spec.heads, .kernel = spec.decoder_kernels[i]};
    x = layers.Convolution(layer, layer + ".conv_layer_norm", x,
                           [&](const std::string& name, ValueId y) {
                             return DynamicConvStep(net, name, y, caches.history, inputs, conv);
                           });
    const ValueId seen = AttentionTo(net, layer + ".encoder_attn", x, caches.keys, caches.values,
                                     lengths, {.heads = spec.heads});
    x = layers.JoinResidual(layer + ".encoder_attn_layer_norm", x, seen);
    x = layers.FeedForward(layer, layer + ".final_layer_norm", x);
  }
  TopWords(net, TranslatorLayers::kOutputTable, x, spec.target_words, candidates);
}

}  // namespace

int64_t AncestorsOf(const TranslatorSpec& spec) {
  return std::ranges::max(spec.decoder_kernels) - 1;
}

Result<Graph> BuildEncoding(const TranslatorSpec& spec, const OpRegistry& ops,
                            const DecodingShape& shape) {
  THIMBLE_TRY(CheckDecoding(spec, shape));
  NetworkBuilder net(ops, Mode::kEvaluate);
  DescribeEncoding(net, spec, shape);
  THIMBLE_ASSIGN_OR_RETURN(NetworkBuilder::Built built, std::move(net).Finish());
  return std::move(built.graph);
}

Result<Graph> BuildStep(const TranslatorSpec& spec, const OpRegistry& ops,
                        const DecodingShape& shape, int64_t candidates) {
  THIMBLE_TRY(CheckDecoding(spec, shape));
  NetworkBuilder net(ops, Mode::kEvaluate);
  DescribeStep(net, spec, shape, candidates);
  THIMBLE_ASSIGN_OR_RETURN(NetworkBuilder::Built built, std::move(net).Finish());
  return std::move(built.graph);
}

}  // namespace thimble
