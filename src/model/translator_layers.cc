#include "thimble/model/translator_layers.h"

#include <fmt/format.h>

#include "thimble/model/sequence_layers.h"

namespace thimble {
namespace {

// The taps of a position add up to 1, so that a single one does nothing. Those of the encoder are
// centred.
Result<void> CheckKernels(const char* part, const std::vector<int64_t>& kernels, bool centred) {
  if (kernels.empty()) return BadInput(fmt::format("the {} has no layers", part));
  for (const int64_t kernel : kernels) {
    if (kernel >= 2 && (!centred || kernel % 2 == 1)) continue;
    return BadInput(fmt::format("a kernel of {} in the {}, expected {}", kernel, part,
                                centred ? "an odd number, at least 3" : "at least 2"));
  }
  return {};
}

}  // namespace

Result<void> CheckTranslator(const TranslatorSpec& spec) {
  if (spec.source_words <= kPaddingToken || spec.target_words <= kPaddingToken) {
    return BadInput(fmt::format("dictionaries of {} and {} entries, expected more than {}",
                                spec.source_words, spec.target_words, kPaddingToken));
  }
  if (spec.heads < 1 || spec.width < 1 || spec.width % spec.heads != 0) {
    return BadInput(
        fmt::format("{} channels cannot be divided among {} heads", spec.width, spec.heads));
  }
  THIMBLE_TRY(CheckKernels("encoder", spec.encoder_kernels, /*centred=*/true));
  return CheckKernels("decoder", spec.decoder_kernels, /*centred=*/false);
}

std::string TranslatorLayers::DecoderLayer(size_t index) {
  return fmt::format("decoder.layers.{}", index);
}

ValueId TranslatorLayers::Projected(const std::string& name, ValueId x) {
  return PositionwiseLinear(net_, name, x, spec_.width);
}

ValueId TranslatorLayers::JoinResidual(const std::string& norm, ValueId x, ValueId computed) {
  return LayerNorm(net_, norm, net_.Add(Dropped(computed), x));
}

ValueId TranslatorLayers::FeedForward(const std::string& layer, const std::string& norm,
                                      ValueId x) {
  const ValueId y = net_.Relu(PositionwiseLinear(net_, layer + ".fc1", x, spec_.feed_forward));
  return JoinResidual(norm, x, Projected(layer + ".fc2", y));
}

ValueId TranslatorLayers::Encoder(ValueId source, ValueId lengths) {
  ValueId x = Dropped(Embedding(net_, kSourceTable, source, spec_.source_words, spec_.width));
  for (size_t i = 0; i < spec_.encoder_kernels.size(); ++i) {
    const std::string layer = fmt::format("encoder.layers.{}", i);
    const DynamicConvSpec conv{
        .heads = spec_.heads, .kernel = spec_.encoder_kernels[i], .dropout = spec_.tap_dropout};
    x = Convolution(layer, layer + ".layer_norms.0", x, [&](const std::string& name, ValueId y) {
      return DynamicConv(net_, name, y, lengths, conv);
    });
    x = FeedForward(layer, layer + ".layer_norms.1", x);
  }
  return x;
}

}  // namespace thimble
