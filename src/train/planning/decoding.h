// Decoding: the plans with which a program translates (model/translator_decoding.h). Sentences are
// padded to one of a few lengths; for each there is a group of two plans, which share the keys,
// values and histories of a batch. How many sentences a batch has depends on the memory there is.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "thimble/base/result.h"
#include "thimble/graph/op_def.h"
#include "thimble/model/translator.h"
#include "thimble/plan/program.h"
#include "thimble/tensor/batch_shape.h"

namespace thimble {

struct DecodingSpec {
  int64_t hypotheses = 4;  // of each sentence: the beam
  int64_t tokens = 4000;   // of a batch, padding included; more if a single sentence has more
  int64_t longest = 1024;  // sentence, </s> included
};

// The graphs for batches of all shapes that might be chosen: for each length, of the largest batch
// and of half as many sentences, a quarter and so on, down to one. kBadInput if the dictionary has
// too few words for so many hypotheses.
Result<std::vector<NamedGraph>> DecodingGraphs(const TranslatorSpec& translator,
                                               const DecodingSpec& spec, const OpRegistry& ops);

struct DecodingPlans {
  struct Pair {
    BatchShape shape = {};
    size_t encode = 0;  // indices of plans
    size_t step = 0;
  };

  // For sentences of so many tokens. Requires at most spec.longest.
  const Pair& For(int64_t source_tokens) const;

  DecodingSpec spec = {};
  int64_t ancestors = 0;          // as in SentenceSearch
  std::map<int64_t, Pair> pairs;  // by length
};

// Adds plans for each length to the program: of the largest batch with which the arena stays within
// `limit_bytes`; of one sentence if there is none. `graphs` are those of DecodingGraphs as
// techniques changed them; others among them are ignored.
Result<DecodingPlans> AddDecodingPlans(Program& program, const std::vector<NamedGraph>& graphs,
                                       const TranslatorSpec& translator, const DecodingSpec& spec,
                                       size_t limit_bytes, const OpRegistry& ops,
                                       const PlanOptions& options);

}  // namespace thimble
