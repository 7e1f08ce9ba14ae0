#include "thimble/model/translator.h"

#include <fmt/format.h>

#include "thimble/model/sequence_layers.h"

namespace thimble {
namespace {

class TranslatorBuilder {
 public:
  TranslatorBuilder(NetworkBuilder& net, const TranslatorSpec& spec, const SentenceShape& shape)
      : net_(net), spec_(spec), shape_(shape) {}

  ValueId Loss() {
    const ValueId source = Tokens(kSourceInput, {shape_.sentences, shape_.source_positions});
    source_lengths_ = Tokens(kSourceLengthsInput, {shape_.sentences});
    const Shape target_shape = {shape_.sentences, shape_.target_positions};
    const ValueId decoder_input = Tokens(kDecoderInput, target_shape);
    const ValueId target = Tokens(kTargetInput, target_shape);
    const ValueId target_lengths = Tokens(kTargetLengthsInput, {shape_.sentences});

    ValueId memory = Embed("encoder.embed_tokens", source, spec_.source_words);
    for (size_t i = 0; i < spec_.encoder_kernels.size(); ++i) {
      memory = EncoderLayer(fmt::format("encoder.layers.{}", i), memory, spec_.encoder_kernels[i]);
    }
    ValueId x = Embed("decoder.embed_tokens", decoder_input, spec_.target_words);
    for (size_t i = 0; i < spec_.decoder_kernels.size(); ++i) {
      x = DecoderLayer(fmt::format("decoder.layers.{}", i), x, memory, target_lengths,
                       spec_.decoder_kernels[i]);
    }
    return TokenCrossEntropy(net_, "decoder.embed_out", x, target, spec_.target_words,
                             spec_.label_smoothing);
  }

 private:
  ValueId Tokens(const char* name, Shape shape) { return net_.Input(name, shape, DType::kI32); }

  ValueId Embed(const std::string& name, ValueId tokens, int64_t words) {
    return Dropped(Embedding(net_, name, tokens, words, spec_.width));
  }

  ValueId Dropped(ValueId x) { return spec_.dropout > 0 ? net_.Dropout(x, spec_.dropout) : x; }

  // A layer norm of the sum of what a half of a layer read and what it computed.
  ValueId JoinResidual(const std::string& norm, ValueId x, ValueId computed) {
    return LayerNorm(net_, norm, net_.Add(Dropped(computed), x));
  }

  ValueId Convolution(const std::string& layer, const std::string& norm, ValueId x, ValueId lengths,
                      int64_t kernel, bool causal) {
    ValueId y = PositionwiseLinear(net_, layer + ".linear1", x, spec_.width);
    y = DynamicConv(
        net_, layer + ".conv", y, lengths,
        {.heads = spec_.heads, .kernel = kernel, .causal = causal, .dropout = spec_.tap_dropout});
    return JoinResidual(norm, x, PositionwiseLinear(net_, layer + ".linear2", y, spec_.width));
  }

  ValueId FeedForward(const std::string& layer, const std::string& norm, ValueId x) {
    const ValueId y = net_.Relu(PositionwiseLinear(net_, layer + ".fc1", x, spec_.feed_forward));
    return JoinResidual(norm, x, PositionwiseLinear(net_, layer + ".fc2", y, spec_.width));
  }

  ValueId EncoderLayer(const std::string& layer, ValueId x, int64_t kernel) {
    x = Convolution(layer, layer + ".layer_norms.0", x, source_lengths_, kernel, /*causal=*/false);
    return FeedForward(layer, layer + ".layer_norms.1", x);
  }

  ValueId DecoderLayer(const std::string& layer, ValueId x, ValueId memory, ValueId lengths,
                       int64_t kernel) {
    x = Convolution(layer, layer + ".conv_layer_norm", x, lengths, kernel, /*causal=*/true);
    const ValueId seen = Attention(net_, layer + ".encoder_attn", x, memory, source_lengths_,
                                   {.heads = spec_.heads, .dropout = spec_.attention_dropout});
    x = JoinResidual(layer + ".encoder_attn_layer_norm", x, seen);
    return FeedForward(layer, layer + ".final_layer_norm", x);
  }

  NetworkBuilder& net_;
  const TranslatorSpec& spec_;
  const SentenceShape& shape_;
  ValueId source_lengths_;
};

Result<void> CheckSpec(const TranslatorSpec& spec, const SentenceShape& shape) {
  if (spec.source_words <= kPaddingToken || spec.target_words <= kPaddingToken) {
    return BadInput(fmt::format("dictionaries of {} and {} entries, expected more than {}",
                                spec.source_words, spec.target_words, kPaddingToken));
  }
  if (spec.heads < 1 || spec.width < 1 || spec.width % spec.heads != 0) {
    return BadInput(
        fmt::format("{} channels cannot be divided among {} heads", spec.width, spec.heads));
  }
  if (shape.sentences < 1 || shape.source_positions < 1 || shape.target_positions < 1) {
    return BadInput(
        fmt::format("a batch of {} sentences with {} and {} positions, expected at "
                    "least 1 of each",
                    shape.sentences, shape.source_positions, shape.target_positions));
  }
  return {};
}

}  // namespace

Result<Network> BuildTranslator(const TranslatorSpec& spec, const OpRegistry& ops,
                                const SentenceShape& shape, Mode mode, uint64_t seed) {
  THIMBLE_TRY(CheckSpec(spec, shape));
  NetworkBuilder net(ops, mode);
  net.set_seed(seed);
  Network network;
  network.loss = TranslatorBuilder(net, spec, shape).Loss();
  THIMBLE_ASSIGN_OR_RETURN(NetworkBuilder::Built built, std::move(net).Finish());
  network.graph = std::move(built.graph);
  network.inits = std::move(built.inits);
  return network;
}

}  // namespace thimble
