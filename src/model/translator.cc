#include "thimble/model/translator.h"

#include <fmt/format.h>

#include "thimble/model/sequence_layers.h"
#include "thimble/model/translator_layers.h"

namespace thimble {
namespace {

ValueId DescribeLoss(NetworkBuilder& net, const TranslatorSpec& spec, const SentenceShape& shape) {
  TranslatorLayers layers(net, spec);
  const ValueId source = layers.Tokens(kSourceInput, {shape.sentences, shape.source_positions});
  const ValueId source_lengths = layers.Tokens(kSourceLengthsInput, {shape.sentences});
  const Shape target_shape = {shape.sentences, shape.target_positions};
  const ValueId decoder_input = layers.Tokens(kDecoderInput, target_shape);
  const ValueId target = layers.Tokens(kTargetInput, target_shape);
  const ValueId target_lengths = layers.Tokens(kTargetLengthsInput, {shape.sentences});

  const ValueId memory = layers.Encoder(source, source_lengths);
  ValueId x = layers.Dropped(
      Embedding(net, TranslatorLayers::kTargetTable, decoder_input, spec.target_words, spec.width));
  for (size_t i = 0; i < spec.decoder_kernels.size(); ++i) {
    const std::string layer = TranslatorLayers::DecoderLayer(i);
    const DynamicConvSpec conv{.heads = spec.heads,
                               .kernel = spec.decoder_kernels[i],
                               .causal = true,
                               .dropout = spec.tap_dropout};
    x = layers.Convolution(layer, layer + ".conv_layer_norm", x,
                           [&](const std::string& name, ValueId y) {
                             return DynamicConv(net, name, y, target_lengths, conv);
                           });
    const ValueId seen = Attention(net, layer + ".encoder_attn", x, memory, source_lengths,
                                   {.heads = spec.heads, .dropout = spec.attention_dropout});
    x = layers.JoinResidual(layer + ".encoder_attn_layer_norm", x, seen);
    x = layers.FeedForward(layer, layer + ".final_layer_norm", x);
  }
  return TokenCrossEntropy(net, TranslatorLayers::kOutputTable, x, target, spec.target_words,
                           spec.label_smoothing);
}

Result<void> CheckShape(const SentenceShape& shape) {
  if (shape.sentences >= 1 && shape.source_positions >= 1 && shape.target_positions >= 1) return {};
  return BadInput(
      fmt::format("a batch of {} sentences with {} and {} positions, expected at least 1 of each",
                  shape.sentences, shape.source_positions, shape.target_positions));
}

}  // namespace

Result<Network> BuildTranslator(const TranslatorSpec& spec, const OpRegistry& ops,
                                const SentenceShape& shape, Mode mode, uint64_t seed) {
  THIMBLE_TRY(CheckTranslator(spec));
  THIMBLE_TRY(CheckShape(shape));
  NetworkBuilder net(ops, mode);
  net.set_seed(seed);
  Network network;
  network.loss = DescribeLoss(net, spec, shape);
  THIMBLE_ASSIGN_OR_RETURN(NetworkBuilder::Built built, std::move(net).Finish());
  network.graph = std::move(built.graph);
  network.inits = std::move(built.inits);
  return network;
}

}  // namespace thimble
