#include "thimble/train/planning/decoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/base/check.h"
#include "thimble/model/translator_decoding.h"

namespace thimble {
namespace {

// More sentences at once gain little speed, and the histories of short ones would need more memory
// than anything else.
constexpr int64_t kMaxSentences = 64;

// At most a third of a batch of sentences longer than 8 tokens is padding.
std::vector<int64_t> PaddedLengths(int64_t longest) {
  std::vector<int64_t> lengths;
  for (int64_t power = 8; lengths.empty() || lengths.back() < longest; power *= 2) {
    lengths.push_back(power);
    if (power >= 16 && power < longest) lengths.push_back(power / 2 * 3);
  }
  lengths.back() = std::min(lengths.back(), longest);
  return lengths;
}

// The largest batch first.
std::vector<BatchShape> BatchesOf(int64_t length, const DecodingSpec& spec) {
  std::vector<BatchShape> batches;
  int64_t sentences = std::clamp<int64_t>(spec.tokens / length, 1, kMaxSentences);
  for (; sentences >= 1; sentences /= 2) {
    batches.push_back({.samples = sentences, .source_length = length});
  }
  return batches;
}

std::string EncodeName(const BatchShape& shape) {
  return fmt::format("encode {}x{}", shape.samples, shape.source_length);
}
// Also the name of their group.
std::string StepName(const BatchShape& shape) {
  return fmt::format("translate {}x{}", shape.samples, shape.source_length);
}

// The encoding and the step for batches of this shape, without other plans.
Result<Program> PlanPair(const ResidentLayout& residents, const std::vector<NamedGraph>& graphs,
                         const BatchShape& shape, const OpRegistry& ops,
                         const PlanOptions& options) {
  Program pair;
  pair.residents = residents;
  std::vector<NamedGraph> chosen;
  for (const std::string& name : {EncodeName(shape), StepName(shape)}) {
    const auto found = std::ranges::find(graphs, name, &NamedGraph::name);
    THIMBLE_CHECK(found != graphs.end(), "no graph '{}'", name);
    chosen.push_back(*found);
  }
  THIMBLE_TRY(AddToProgram(pair, chosen, ops, options));
  return pair;
}

}  // namespace

Result<std::vector<NamedGraph>> DecodingGraphs(const TranslatorSpec& translator,
                                               const DecodingSpec& spec, const OpRegistry& ops) {
  std::vector<NamedGraph> graphs;
  for (const int64_t length : PaddedLengths(spec.longest)) {
    for (const BatchShape& batch : BatchesOf(length, spec)) {
      const DecodingShape shape{batch.samples, batch.source_length, spec.hypotheses};
      NamedGraph encode{.name = EncodeName(batch), .group = StepName(batch)};
      THIMBLE_ASSIGN_OR_RETURN(encode.graph, BuildEncoding(translator, ops, shape));
      graphs.push_back(std::move(encode));
      NamedGraph step{.name = StepName(batch), .group = StepName(batch)};
      // At most half of them are </s>.
      THIMBLE_ASSIGN_OR_RETURN(step.graph, BuildStep(translator, ops, shape, 2 * spec.hypotheses));
      graphs.push_back(std::move(step));
    }
  }
  return graphs;
}

const DecodingPlans::Pair& DecodingPlans::For(int64_t source_tokens) const {
  const auto found = pairs.lower_bound(source_tokens);
  THIMBLE_CHECK(found != pairs.end(), "no plan for a sentence of {} tokens", source_tokens);
  return found->second;
}

Result<DecodingPlans> AddDecodingPlans(Program& program, const std::vector<NamedGraph>& graphs,
                                       const TranslatorSpec& translator, const DecodingSpec& spec,
                                       size_t limit_bytes, const OpRegistry& ops,
                                       const PlanOptions& options) {
  DecodingPlans plans{.spec = spec, .ancestors = AncestorsOf(translator), .pairs = {}};
  for (const int64_t length : PaddedLengths(spec.longest)) {
    for (const BatchShape& shape : BatchesOf(length, spec)) {
      THIMBLE_ASSIGN_OR_RETURN(Program pair,
                               PlanPair(program.residents, graphs, shape, ops, options));
      if (pair.arena_bytes > limit_bytes && shape.samples > 1) continue;
      plans.pairs[length] = {shape, program.plans.size(), program.plans.size() + 1};
      Append(program, std::move(pair));
      break;
    }
  }
  return plans;
}

}  // namespace thimble
