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

// A table "<name>.weight" (words, channels), normal with standard deviation channels^-1/2: its rows
// times channels^1/2, plus fixed sinusoidal positions. Rows of padding are zero.
ValueId Embedding(NetworkBuilder& net, const std::string& name, ValueId tokens, int64_t words,
                  int64_t channels);

// Each position on its own: "<name>.weight" (features, channels), Xavier uniform, and
// "<name>.bias", zero.
ValueId PositionwiseLinear(NetworkBuilder& net, const std::string& name, ValueId x,
                           int64_t features);

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

struct AttentionSpec {
  int64_t heads = 1;
  double dropout = 0;  // of probabilities
};
// Each position of `x` looks at the positions of `source`: "<name>.q_proj", ".k_proj", ".v_proj"
// and
// ".out_proj" are positionwise linear layers.
ValueId Attention(NetworkBuilder& net, const std::string& name, ValueId x, ValueId source,
                  ValueId source_lengths, const AttentionSpec& spec);

// The sum over all targets but padding of the label-smoothed cross-entropy of x times "<name>"
// (words, channels) transposed; output of the graph, with the sum of -log p (kNllOutput) and the
// number of targets with the largest logit.
ValueId TokenCrossEntropy(NetworkBuilder& net, const std::string& name, ValueId x, ValueId targets,
                          int64_t words, double smoothing);

inline constexpr const char* kNllOutput = "nll";  // f32 [1]

}  // namespace thimble
