// TranslatorLayers: the layers of a DynamicConv network, which training (translator.cc) and
// decoding (translator_decoding.cc) put together in different ways.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/base/result.h"
#include "thimble/model/network_builder.h"
#include "thimble/model/translator.h"

namespace thimble {

// Whether dictionaries, channels and heads of the network fit together.
Result<void> CheckTranslator(const TranslatorSpec& spec);

class TranslatorLayers {
 public:
  // Both arguments must outlive this.
  TranslatorLayers(NetworkBuilder& net, const TranslatorSpec& spec) : net_(net), spec_(spec) {}

  // Adds an input for tokens or lengths.
  ValueId Tokens(const char* name, Shape shape) { return net_.Input(name, shape, DType::kI32); }
  ValueId Dropped(ValueId x) { return spec_.dropout > 0 ? net_.Dropout(x, spec_.dropout) : x; }

  // The whole encoder: source (B, S) and lengths (B) to (B, S, C).
  ValueId Encoder(ValueId source, ValueId lengths);

  // The halves of layers. Each ends with a layer norm of the sum of what it read and what it
  // computed.
  ValueId JoinResidual(const std::string& norm, ValueId x, ValueId computed);
  // `convolve(layer, x)` is the dynamic convolution between two linear layers.
  template <class Convolve>
  ValueId Convolution(const std::string& layer, const std::string& norm, ValueId x,
                      const Convolve& convolve) {
    const ValueId y = convolve(layer + ".conv", Projected(layer + ".linear1", x));
    return JoinResidual(norm, x, Projected(layer + ".linear2", y));
  }
  ValueId FeedForward(const std::string& layer, const std::string& norm, ValueId x);

  // "decoder.layers.3".
  static std::string DecoderLayer(size_t index);
  static constexpr const char* kSourceTable = "encoder.embed_tokens";
  static constexpr const char* kTargetTable = "decoder.embed_tokens";
  static constexpr const char* kOutputTable = "decoder.embed_out";

 private:
  // A linear layer of the network's width.
  ValueId Projected(const std::string& name, ValueId x);

  NetworkBuilder& net_;
  const TranslatorSpec& spec_;
};

}  // namespace thimble
