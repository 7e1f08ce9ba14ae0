// Layers of networks for sequences, on a NetworkBuilder. Values are (B, T, C): sentences,
// positions, channels. Sentences of a batch have different lengths; positions after the end are
// padding.
#pragma once

#include <cstdint>
#include <string>

#include "thimble/model/network_builder.h"

namespace thimble {

// Special entries of dictionaries, as fairseq has them.
inline constexpr int64_t kPaddingToken = 1;
inline constexpr int64_t kEndToken = 2;

// A table "<name>.weight" (words, channels), normal with standard deviation channels^-1/2: its rows
// times channels^1/2, plus fixed sinusoidal positions. Rows of padding are zero.
ValueId Embedding(NetworkBuilder& net, const std::string& name, ValueId tokens, int64_t words,
                  int64_t channels);

// The same for tokens (B, N) that are alternatives for one position, that of the input `step` [1].
ValueId EmbeddingOfStep(NetworkBuilder& net, const std::string& name, ValueId tokens, ValueId step,
                        int64_t words, int64_t channels);

// Each position on its own: "<name>.weight" (features, channels), Xavier uniform, and
// "<name>.bias", zero.
ValueId PositionwiseLinear(NetworkBuilder& net, const std::string& name, ValueId x,
                           int64_t features);
// The same; its output becomes the next version of a cache.
void PositionwiseLinearToCache(NetworkBuilder& net, const std::string& name, ValueId x,
                               ValueId cache);

ValueId LayerNorm(NetworkBuilder& net, const std::string& name, ValueId x);

struct DynamicConvSpec {
  int64_t heads = 1;
  int64_t kernel = 3;
  bool causal = false;  // the window ends at its position instead of being centred on it
  double dropout = 0;   // of taps
};
// A convolution whose taps each position computes from its own channels:
// "<name>.weight_linear.weight" (heads * kernel, channels), uniform, without bias.
ValueId DynamicConv(NetworkBuilder& net, const std::string& name, ValueId x, ValueId lengths,
                    const DynamicConvSpec& spec);

// The same at the newest position of each of N hypotheses: x (B, N, C). `history`, a cache (kernel
// - 1, B, N, C), has the inputs of earlier positions; `ancestors` and `step` say where
// (ops/dynamic_conv_step). Requires a kernel of at least 2.
struct StepInputs {
  ValueId ancestors;  // i32 (B, N, P)
  ValueId step;       // i32 [1]
};
ValueId DynamicConvStep(NetworkBuilder& net, const std::string& name, ValueId x, ValueId history,
                        const StepInputs& inputs, const DynamicConvSpec& spec);

struct AttentionSpec {
  int64_t heads = 1;
  double dropout = 0;  // of probabilities
};
// Each position of `x` looks at the positions of `source`: "<name>.q_proj", ".k_proj", ".v_proj"
// and
// ".out_proj" are positionwise linear layers.
ValueId Attention(NetworkBuilder& net, const std::string& name, ValueId x, ValueId source,
                  ValueId source_lengths, const AttentionSpec& spec);

// The same in two halves. `keys` and `values` (B, S, C) are what ".k_proj" and ".v_proj" make of
// the source.
ValueId AttentionTo(NetworkBuilder& net, const std::string& name, ValueId x, ValueId keys,
                    ValueId values, ValueId source_lengths, const AttentionSpec& spec);

// The `count` likeliest next words after x (B, N, C) by "<name>" (words, channels), their log
// probabilities and that of the end of the sentence; outputs of the graph.
void TopWords(NetworkBuilder& net, const std::string& name, ValueId x, int64_t words,
              int64_t count);

// The sum over all targets but padding of the label-smoothed cross-entropy of x times "<name>"
// (words, channels) transposed; output of the graph, with the sum of -log p (kNllOutput) and the
// number of targets with the largest logit.
ValueId TokenCrossEntropy(NetworkBuilder& net, const std::string& name, ValueId x, ValueId targets,
                          int64_t words, double smoothing);

inline constexpr const char* kNllOutput = "nll";                                // f32 [1]
inline constexpr const char* kTopWordsOutput = "top_words";                     // i32 (B, N, M)
inline constexpr const char* kLogProbabilitiesOutput = "log_probabilities";     // f32 (B, N, M)
inline constexpr const char* kEndLogProbabilityOutput = "end_log_probability";  // f32 (B, N)

}  // namespace thimble
