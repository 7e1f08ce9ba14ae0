// Translator: a DynamicConv network from source and target sentences to the loss of the target's
// next tokens (Wu et al. 2019, "Pay Less Attention"), for any batch shape, and its forward graphs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/model/image_classifier.h"

namespace thimble {

struct TranslatorSpec {
  int64_t source_words = 0;  // entries of the dictionaries
  int64_t target_words = 0;
  int64_t width = 512;
  int64_t feed_forward = 1024;
  int64_t heads = 4;                          // of convolutions and attention
  std::vector<int64_t> encoder_kernels = {};  // by layer
  std::vector<int64_t> decoder_kernels = {};
  double dropout = 0.3;
  double attention_dropout = 0.1;
  double tap_dropout = 0.1;
  double label_smoothing = 0.1;
  std::string text = {};  // of the model file; empty for a built-in network

  friend bool operator==(const TranslatorSpec&, const TranslatorSpec&) = default;
};

// A batch: sentences, padded to the same number of positions on each side.
struct SentenceShape {
  int64_t sentences = 0;
  int64_t source_positions = 0;
  int64_t target_positions = 0;
};

// Whether this is the name of a translator, whose options may be wrong, or a model file of one.
bool IsTranslator(std::string_view name);

// "dynamicconv-iwslt" or "dynamicconv-tiny", for dictionaries of these sizes. Options follow a
// colon, separated by commas: "dynamicconv-tiny:dropout=0". A name that ends in ".toml" is a model
// file.
Result<TranslatorSpec> FindTranslator(std::string_view name, int64_t source_words,
                                      int64_t target_words);

// The forward graph of a batch of this shape. Its loss is the sum over target tokens. Evaluation
// draws no random numbers and ignores the seed.
Result<Network> BuildTranslator(const TranslatorSpec& spec, const OpRegistry& ops,
                                const SentenceShape& shape, Mode mode, uint64_t seed = 0);

// Inputs, all i32. Padding is at the end of sentences.
inline constexpr const char* kSourceInput = "source";                 // (B, S), tokens
inline constexpr const char* kSourceLengthsInput = "source_lengths";  // (B)
inline constexpr const char* kDecoderInput = "decoder_input";         // (B, T), the tokens before
inline constexpr const char* kTargetInput = "target";                 // (B, T), the next tokens
inline constexpr const char* kTargetLengthsInput = "target_lengths";  // (B)

}  // namespace thimble
