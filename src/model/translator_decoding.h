// The graphs with which a translator translates, one token at a time, several hypotheses for each
// sentence. "Encode" runs once for each batch: it stores the keys and values that the decoder's
// attention looks at, and clears the histories of its convolutions. "Step" runs once for each
// position: it reads one token of each hypothesis and finds the likeliest next words. What one run
// leaves for the next is in caches (Role::kCache).
#pragma once

#include <cstdint>

#include "thimble/base/result.h"
#include "thimble/model/translator.h"

namespace thimble {

struct DecodingShape {
  int64_t sentences = 0;         // B
  int64_t source_positions = 0;  // S
  int64_t hypotheses = 0;        // N, of each sentence
};

// Inputs: source (B, S), source_lengths (B).
Result<Graph> BuildEncoding(const TranslatorSpec& spec, const OpRegistry& ops,
                            const DecodingShape& shape);

// Inputs:
//   source_lengths   (B), as in the batch's encoding
//   hypothesis_input (B, N), the token before this position: </s> before the first
//   ancestors        (B, N, P): the hypothesis at position t - 1 - d that n descends from;
//                    P = AncestorsOf(spec)
//   step             [1], the position t, from 0
// Outputs: the `candidates` likeliest words of each hypothesis, kTopWordsOutput and so on
// (sequence_layers.h).
Result<Graph> BuildStep(const TranslatorSpec& spec, const OpRegistry& ops,
                        const DecodingShape& shape, int64_t candidates);

// How many earlier positions the decoder looks back.
int64_t AncestorsOf(const TranslatorSpec& spec);

inline constexpr const char* kHypothesisInput = "hypothesis_input";
inline constexpr const char* kAncestorsInput = "ancestors";
inline constexpr const char* kStepInput = "step";

}  // namespace thimble
